"""`countinggrids browse` and `export`: the map of a collection in the browser."""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common, progress

if TYPE_CHECKING:
    from countinggrids.explore import ItemMap

ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` wrote.", exists=True, dir_okay=False)]
CollectionFile = Annotated[Path, typer.Argument(help="The collection to show.", exists=True, dir_okay=False)]
Root = Annotated[Path | None, typer.Option(help="Folder of the items' files, if they have moved.")]
N_REASONS = 5
"""Images that are left out and named; the others are only counted."""
Title = Annotated[str, typer.Option(help="Heading of the page; the name of the collection by default.")]


def browse(
    model_file: ModelFile,
    collection_file: CollectionFile,
    host: Annotated[str, typer.Option(help="Address to listen at; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8765,
    allow_host: Annotated[list[str] | None, typer.Option(help="Another host name that requests may use.")] = None,
    get: Annotated[
        str | None, typer.Option(help="Print one view as JSON, such as /cell/3/4.json, instead of serving.")
    ] = None,
    root: Root = None,
    title: Title = "",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Show a collection as a map in the browser, until Ctrl-C."""
    with common.errors():
        from countinggrids.explore.routes import Routes

        if get is not None:
            _print_view(Routes(_item_map(model_file, collection_file, root, title)), get)
            return
        server = _server()
        item_map = _item_map(model_file, collection_file, root, title)
        _log_images(item_map)
        routes = Routes(item_map)
        with progress.spinner("drawing the map"):
            routes.map_view  # noqa: B018
        if host not in server.LOOPBACK:
            common.log(f"anyone who can reach {host} can now see this collection")

        def ready(address: str) -> None:
            print(f"{address}  (Ctrl-C ends it)", flush=True)
            if open_page:
                import webbrowser

                webbrowser.open(address)

        server.serve(routes, host, port, allow_host or [], ready)


def export(
    model_file: ModelFile,
    collection_file: CollectionFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page, such as map.html.")],
    largest: Annotated[
        float, typer.Option(help="Largest size of the page in megabytes; thumbnails are downsampled until it fits.")
    ] = 25,
    root: Root = None,
    title: Title = "",
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Write the map into one HTML file that opens from disk, without a server or a network."""
    with common.errors():
        common.check_output(output, force)
        common.check_apart([("MODEL_FILE", model_file), ("COLLECTION_FILE", collection_file)], [("--output", output)])
        from countinggrids.explore import export as write_page

        item_map = _item_map(model_file, collection_file, root, title)
        _log_images(item_map)
        with progress.count_bar("sheets of thumbnails") as callback, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*images left out")  # logged above
            size = write_page(item_map, output, largest, callback)
    common.print_facts(
        {"items": len(item_map.collection), "megabytes": round(size / 1e6, 2), "page": str(output)}, as_json
    )


def _item_map(model_file: Path, collection_file: Path, root: Path | None, title: str) -> "ItemMap":
    from countinggrids.explore import ItemMap

    model = common.load_grid(model_file)
    collection = countinggrids.Collection.load(collection_file, root)
    with progress.count_bar("locating items") as callback:
        return ItemMap(model, collection, title or collection_file.stem, callback)


def _log_images(item_map: "ItemMap") -> None:
    """Log the folder of the images, and those that are left out."""
    from countinggrids.explore import pictures

    reasons = pictures.left_out(item_map)
    n_items = len(item_map.collection)
    if pictures.has_thumbnails(item_map) and len(reasons) < n_items:
        common.log(f"showing {n_items - len(reasons)} images below {item_map.collection.items.folder()}")
    for reason in list(dict.fromkeys(reasons))[:N_REASONS]:
        common.log(f"left out: {reason}")
    if reasons:
        common.log(f"{len(reasons)} of {n_items} images left out; use --root for the folder that has them")


def _print_view(routes: Any, address: str) -> None:
    path, _, query = address.partition("?")
    answer = routes.get(path, _server().read_query(query))
    if not answer.kind.startswith("application/json"):
        raise ValueError(f"--get={address} must end in .json; use for instance --get=/index.json.")
    if answer.status != 200:
        raise ValueError(json.loads(answer.body)["error"])
    print(answer.body.decode())


def _server() -> Any:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "browse needs Starlette and uvicorn, which are not installed; pip install 'countinggrids[explore]'."
        ) from error
    from countinggrids.explore import server

    return server
