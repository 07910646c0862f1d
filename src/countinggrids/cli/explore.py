"""`countinggrids browse` and `export`: the map of a collection in the browser."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common

if TYPE_CHECKING:
    from countinggrids.explore import Atlas

ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` wrote.", exists=True, dir_okay=False)]
CollectionFile = Annotated[Path, typer.Argument(help="The collection to show.", exists=True, dir_okay=False)]
Root = Annotated[Path | None, typer.Option(help="Where the items' files are now, if they have moved.")]
Title = Annotated[str, typer.Option(help="The page's heading; the collection's name if left out.")]


def browse(
    model_file: ModelFile,
    collection_file: CollectionFile,
    host: Annotated[
        str, typer.Option(help="Address to listen at; the default is seen by this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name that browsers may call this machine by.")
    ] = None,
    get: Annotated[
        str | None, typer.Option(help="Print one view as JSON, such as /cell/3/4.json, and serve nothing.")
    ] = None,
    root: Root = None,
    title: Title = "",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Show a collection as a map in the browser, until Ctrl-C."""
    with common.errors():
        from countinggrids.explore.routes import Routes

        if get is not None:
            _print_view(Routes(_atlas(model_file, collection_file, root, title)), get)
            return
        server = _server()
        atlas = _atlas(model_file, collection_file, root, title)
        _warn_of_missing(atlas)
        routes = Routes(atlas)
        with common.working("drawing the map"):
            routes.chart  # noqa: B018
        if host not in server.LOOPBACK:
            common.say(f"anyone who can reach {host} can now see this collection")

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
    largest: Annotated[float, typer.Option(help="Megabytes the page may have; thumbnails shrink until it fits.")] = 25,
    root: Root = None,
    title: Title = "",
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Write the map into one HTML file that opens from disk, without a server or a network."""
    with common.errors():
        common.check_output(output, force)
        from countinggrids.explore import export as write_page

        atlas = _atlas(model_file, collection_file, root, title)
        _warn_of_missing(atlas)
        with common.counting("sheets of thumbnails") as watch:
            size = write_page(atlas, output, largest, watch)
    common.print_facts(
        {"items": len(atlas.collection), "megabytes": round(size / 1e6, 2), "page": str(output)}, as_json
    )


def _atlas(model_file: Path, collection_file: Path, root: Path | None, title: str) -> "Atlas":
    from countinggrids.explore import Atlas

    model = countinggrids.load(model_file)
    collection = countinggrids.Collection.load(collection_file, root)
    with common.counting("locating items") as watch:
        return Atlas(model, collection, title or collection_file.stem, watch)


def _warn_of_missing(atlas: "Atlas") -> None:
    """Say so if the images are not where the collection says."""
    from countinggrids.explore import pictures

    missing = pictures.n_missing(atlas)
    if missing:
        where = atlas.collection.items.root
        common.say(f"{missing} of {len(atlas.collection)} images are not under {where}; --root says where they are now")


def _print_view(routes: Any, address: str) -> None:
    path, _, query = address.partition("?")
    answer = routes.get(path, _server().read_query(query))
    if not answer.kind.startswith("application/json"):
        raise ValueError(f"--get is {address!r}; wanted a view that ends in .json, such as /index.json")
    if answer.status != 200:
        raise ValueError(json.loads(answer.body)["error"])
    print(answer.body.decode())


def _server() -> Any:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'serving needs Starlette and uvicorn; pip install "countinggrids[explore]" brings them'
        ) from error
    from countinggrids.explore import server

    return server
