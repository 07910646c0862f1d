"""`countinggrids demo`, `fit`, `info`, `locate` and `score`: models from collections or plain counts."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import bag, common

if TYPE_CHECKING:
    from countinggrids.collection import Collection
    from countinggrids.model import GridModel

ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` or `save` wrote.", exists=True, dir_okay=False)]
BagsFile = Annotated[
    Path,
    typer.Argument(
        help="A collection that `bag` wrote, a dense .npy array of counts, or a .npz that scipy.sparse.save_npz wrote.",
        exists=True,
        dir_okay=False,
    ),
]


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the picture, the model and the map.")
    ] = Path("demo"),
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Cut a photo into fifty windows, forget where they were, and let a grid put them back."""
    from countinggrids import demo as demonstration

    with common.errors(), common.learning() as callback:
        report = demonstration.run(folder, seed, callback)
    if as_json:
        print(json.dumps(report))
        return
    print(f"{report['put_back']} of {report['windows']} windows are back in place, after {report['seconds']} s")
    print(f"picture: {report['picture']}")
    print(f"model:   {report['model']}")
    print(f"map:     {report['page']}  (open it in a browser)")


def fit(
    bags: BagsFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    grid: Annotated[
        str | None, typer.Option(help="Cells along each axis of the torus, such as 32x32; chosen if left out.")
    ] = None,
    window: Annotated[str | None, typer.Option(help="Cells along each axis of the window, such as 8x8.")] = None,
    sections: Annotated[
        str | None, typer.Option(help="Parts that windows and bags are cut into, such as 2x2; the collection's.")
    ] = None,
    paint: Annotated[str | None, typer.Option(help="Finer parts laid down in the M step.")] = None,
    max_iter: Annotated[int, typer.Option(help="Iterations at the most.")] = 500,
    n_init: Annotated[int, typer.Option(help="Restarts; the best is kept.")] = 1,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File that keeps what was done, to go on from if killed; gone once the model is written."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler, such as tcp://10.0.0.5:8786. Its workers read the bags themselves: they "
            "must see the file under the same name."
        ),
    ] = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Learn a counting grid from bags."""
    from countinggrids.scheduler import connected

    with common.errors():
        common.check_output(output, force)
        texts = {"grid": grid, "window": window, "sections": sections, "paint": paint}
        shapes = {name: common.shape(text, name) for name, text in texts.items() if text is not None}
        X = read(bags)
        fingerprint = getattr(X, "fingerprint", None)
        collection = X
        X, shapes = bags_for(X, shapes)
        model = countinggrids.CountingGrid(
            **shapes,  # type: ignore[arg-type]
            max_iter=max_iter,
            n_init=n_init,
            random_state=seed,
        )
        with connected(scheduler), common.learning() as callback:
            X = X if scheduler is None else _spread(bags, collection, shapes)
            model.fit(X, callback=callback, checkpoint=checkpoint)
        model.fingerprint_ = fingerprint
        model.save(output)
        if checkpoint is not None:
            checkpoint.unlink()
    common.print_facts(_facts(model) | {"model": str(output)}, as_json)


def info(
    file: Annotated[Path, typer.Argument(help="A model or a collection.", exists=True, dir_okay=False)],
    as_json: common.Json = False,
) -> None:
    """Tell what a model or a collection is."""
    from countinggrids import files

    with common.errors():
        if files.read_facts(file).get("format") == "collection":
            facts = {"class": "Collection"} | bag.facts(countinggrids.Collection.load(file))
        else:
            facts = _facts(countinggrids.load(file))
        common.print_facts(facts, as_json)


def locate(model_file: ModelFile, bags: BagsFile, as_json: common.Json = False) -> None:
    """Print the most likely cell of every bag: one line of coordinates a bag, then the item's name if it has one."""
    with common.errors():
        model = countinggrids.load(model_file)
        X, names = bags_of(bags, model)
        places = model.locate(X).tolist()
    _print_each([" ".join(map(str, place)) for place in places], places, "place", names, as_json)


def score(model_file: ModelFile, bags: BagsFile, as_json: common.Json = False) -> None:
    """Print log p of every bag, one a line, then the item's name if it has one."""
    with common.errors():
        model = countinggrids.load(model_file)
        X, names = bags_of(bags, model)
        values = model.score_samples(X).tolist()
    _print_each([f"{value:.6f}" for value in values], values, "score", names, as_json)


def bags_for(X: Any, shapes: dict[str, tuple[int, ...]]) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Give counts to learn from, at the finest sections asked for, and choose what was not said."""
    from countinggrids.geometry import suggest

    sections = shapes.get("sections")
    if isinstance(X, countinggrids.Collection):
        sections = sections or X.sections
        if len(sections) > 1:
            shapes = shapes | {"sections": sections}
        X = X.coarsen(shapes.get("paint") or sections).counts
    if "grid" not in shapes:
        n_features = X.shape[1] // _product(shapes.get("paint") or shapes.get("sections") or (1,))
        grid, window = suggest(X.shape[0], max(n_features, 1), shapes.get("sections") or (1, 1), shapes.get("window"))
        shapes = shapes | {"grid": grid, "window": window}
        common.say(
            f"grid {_joined(grid)} and window {_joined(window)} chosen for {X.shape[0]} bags; "
            "--grid and --window choose others"
        )
    shapes.setdefault("window", tuple(min(8, n) for n in shapes["grid"]))
    return X, shapes


def _spread(path: Path, collection: Any, shapes: dict[str, tuple[int, ...]]) -> list[Any]:
    """Give the counts of a file as blocks that workers read, at the finest sections asked for."""
    from dask.delayed import delayed

    from countinggrids.bags import coarsen
    from countinggrids.blockwise import of_file

    if not isinstance(collection, countinggrids.Collection):
        return of_file(path)
    wanted = shapes.get("paint") or shapes.get("sections") or collection.sections
    how = (len(collection.vocabulary), collection.sections, wanted)
    return [delayed(coarsen)(block, *how, pure=False) for block in of_file(path)]


def bags_of(path: Path, model: "GridModel") -> tuple[Any, list[str] | None]:
    """Read counts to look at with a model, at the model's sections, and the names of the items."""
    X = read(path)
    if not isinstance(X, countinggrids.Collection):
        return X, None
    collection = X.for_model(model)
    return collection.counts, _names(collection)


def _print_each(texts: list[str], values: list[Any], what: str, names: list[str] | None, as_json: bool) -> None:
    """Print a value a line with the name of its item, or all as JSON; plain counts have no names."""
    if as_json:
        named = values if names is None else [{"item": n, what: v} for n, v in zip(names, values, strict=True)]
        print(json.dumps(named))
        return
    for i, text in enumerate(texts):
        print(text if names is None else f"{text}\t{common.one_line(names[i])}")


def _names(collection: "Collection") -> list[str] | None:
    column = next((name for name in ("path", "title") if name in collection.items), None)
    return None if column is None else collection.items[column].tolist()


def read(path: Path) -> Any:
    """Read a collection, or plain counts."""
    from countinggrids import sources

    return sources.load(path) if path.suffix in (".npy", ".npz") else countinggrids.Collection.load(path)


def _product(shape: tuple[int, ...]) -> int:
    from math import prod

    return prod(shape)


def _joined(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _facts(model: "GridModel") -> dict[str, Any]:
    shown = ("grid", "window", "sections", "paint", "n_components")
    parameters = {name: value for name, value in model.get_params().items() if name in shown and value is not None}
    learnt = {
        "capacity": round(model.capacity, 3),
        "columns": model.n_features_in_,
        "features": model.pi_.shape[-1],
        "iterations": model.n_iter_,
        "converged": getattr(model, "converged_", None),
        "objective_per_token": float(model.history_[-1]) if len(model.history_) else None,
    }
    return {"class": type(model).__name__} | parameters | learnt
