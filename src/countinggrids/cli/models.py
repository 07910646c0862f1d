"""`countinggrids demo`, `fit`, `info`, `locate` and `score`: models from collections or plain counts."""

import json
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import bag, common, model_size, progress

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection
    from countinggrids.models.base import GridModel

ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` or `save` wrote.", exists=True, dir_okay=False)]
BagsFile = Annotated[
    Path,
    typer.Argument(
        help="A collection that `bag` wrote, a dense .npy array of counts, or a .npz that scipy.sparse.save_npz wrote.",
        exists=True,
        dir_okay=False,
    ),
]

MODELS = {"counting": "CountingGrid", "elastic": "ElasticGrid", "componential": "ComponentialGrid"}
"""Classes of the models that `fit` knows, by name."""


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the picture, the model and the map.")
    ] = Path("demo"),
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Cut a photo into fifty windows, discard their positions, and let a grid recover them."""
    from countinggrids.reproduce import demo as demonstration

    with common.errors(), progress.fit_bar() as callback:
        report = demonstration.run(folder, seed, callback)
    if as_json:
        print(json.dumps(report))
        return
    print(f"{report['put_back']} of {report['windows']} windows recovered in {report['seconds']} s")
    print(f"picture: {report['picture']}")
    print(f"model:   {report['model']}")
    print(f"map:     {report['page']}  (open it in a browser)")


def fit(
    bags: BagsFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    grid: Annotated[
        str | None,
        typer.Option(
            help="Cells along each axis of the torus, such as 32x32; by default chosen by the number of bags."
        ),
    ] = None,
    window: Annotated[str | None, typer.Option(help="Cells along each axis of the window, such as 8x8.")] = None,
    sections: Annotated[
        str | None, typer.Option(help="Sections of windows and bags, such as 2x2; by default those of the collection.")
    ] = None,
    paint: Annotated[str | None, typer.Option(help="Finer sections that are painted in the M step.")] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--model",
            help="The model: counting, elastic, whose sections may slip, or componential, a window for every token.",
        ),
    ] = "counting",
    slack: Annotated[
        str | None, typer.Option(help="Cells by which sections of an elastic grid may slip, such as 1 or 1x2.")
    ] = None,
    max_words: Annotated[
        int | None,
        typer.Option(min=1, help="Number of words, the most frequent ones; needs --collection. Default: all."),
    ] = None,
    collection_file: Annotated[
        Path | None, typer.Option("--collection", help="Where to keep the bags of these words.")
    ] = None,
    compact: Annotated[
        bool,
        typer.Option("--compact", help="Round probabilities in the model to one byte: a quarter of the size."),
    ] = False,
    max_iter: Annotated[int, typer.Option(help="Largest number of iterations.")] = 500,
    n_init: Annotated[int, typer.Option(help="Number of restarts, of which the best is kept.")] = 1,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File of the training state, from which the same command resumes; deleted at the end."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler, such as tcp://10.0.0.5:8786. Its workers read the bags, and must see "
            "the file under the same name."
        ),
    ] = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show neither the estimate nor the progress.")] = False,
    as_json: common.Json = False,
) -> None:
    """Fit a counting grid to bags."""
    from countinggrids.backends.dask.client import connected

    with common.errors(), common.interruptible(lambda: _advice(checkpoint)):
        common.check_output(output, force)
        outputs = [("--output", output), ("--checkpoint", checkpoint), ("--collection", collection_file)]
        common.check_apart([("BAGS", bags)], outputs)
        _check_kind(kind, slack)
        model_size.check_words(max_words, collection_file, scheduler, force)
        texts = {"grid": grid, "window": window, "sections": sections, "paint": paint}
        shapes = {name: common.shape(text, name) for name, text in texts.items() if text is not None}
        X = read(bags)
        if max_words is not None:
            X = model_size.frequent(X, max_words)
        shapes = (_componential_shapes if kind == "componential" else complete_shapes)(X, shapes)
        options: dict[str, Any] = {"max_iter": max_iter, "n_init": n_init, "random_state": seed}
        model = _new_model(kind, shapes | _slack(kind, slack) | options)
        if not quiet:
            model_size.log_size(X, model, compact)
        with connected(scheduler), progress.verbose(model, quiet):
            counts = X if scheduler is None else _delayed_blocks(bags, X, shapes)
            model.fit(counts, checkpoint=checkpoint)
        if scheduler is not None:
            model.fingerprint_ = getattr(X, "fingerprint", None)
        model.save(output, compact=compact)
        if collection_file is not None and max_words is not None:
            X.save(collection_file)
        if checkpoint is not None:
            checkpoint.resolve().unlink(missing_ok=True)
    common.print_facts(_facts(model) | {"model": str(output)}, as_json)


def _check_kind(kind: str, slack: str | None) -> None:
    """Raise unless the model is known, and has the slack that was given."""
    if kind not in MODELS:
        raise ValueError(f"--model={kind} must be one of {', '.join(MODELS)}; use --model counting.")
    if slack is not None and kind != "elastic":
        raise ValueError(f"--slack={slack} needs sections that may slip; use --model elastic.")


def _slack(kind: str, slack: str | None) -> dict[str, Any]:
    """Return the slack of an elastic grid as a parameter."""
    if kind != "elastic":
        return {}
    try:
        cells = tuple(int(part) for part in (slack or "1").split("x"))
    except ValueError:
        raise ValueError(f"--slack={slack} must be a number of cells; use for instance --slack 1 or 1x2.") from None
    return {"slack": cells[0] if len(cells) == 1 else cells}


def _new_model(kind: str, parameters: dict[str, Any]) -> Any:
    return getattr(countinggrids, MODELS[kind])(**parameters)


def _advice(checkpoint: Path | None) -> str:
    """Return how a fit that was interrupted can be resumed."""
    if checkpoint is None:
        return "nothing was written; use --checkpoint FILE to resume a fit with the same command."
    if not checkpoint.exists():
        return f"nothing was written to {checkpoint} yet; the same command starts from the beginning."
    return f"the training state is in {checkpoint}; the same command resumes from it."


def info(
    file: Annotated[
        Path, typer.Argument(help="A model, a collection, or counts: .npy or .npz.", exists=True, dir_okay=False)
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify every array against its digest, also those that are read lazily.")
    ] = False,
    as_json: common.Json = False,
) -> None:
    """Describe a model, a collection or a table of counts."""
    from countinggrids.data import container

    with common.errors():
        lines: list[str] = []
        if file.suffix in container.COUNTS:
            facts = _counts_facts(read(file))
        elif container.read_facts(file).get("format") == "collection":
            facts, lines = _collection_facts(countinggrids.Collection.load(file), as_json)
        else:
            facts = _facts(countinggrids.load(file))
        if verify and file.suffix not in container.COUNTS:
            facts["verified_arrays"] = container.verify(file)
        common.print_facts(facts, as_json)
        for line in lines:
            print(common.one_line(line))


def _collection_facts(collection: "Collection", as_json: bool) -> tuple[dict[str, Any], list[str]]:
    """Return a description of a collection, and the report on its texts: as data, or as lines."""
    from countinggrids.features.text_report import lines_of

    facts = {"class": "Collection"} | bag.facts(collection)
    if not collection.report:
        return facts, []
    return (facts | {"report": collection.report}, []) if as_json else (facts, lines_of(collection.report))


def locate(model_file: ModelFile, bags: BagsFile, as_json: common.Json = False) -> None:
    """Print the most likely cell of each bag: a line with its coordinates and the name of the item."""
    with common.errors():
        model = common.load_grid(model_file)
        X, names = bags_of(bags, model)
        places = model.locate(X).tolist()
    _print_each([" ".join(map(str, place)) for place in places], places, "place", names, as_json)


def score(model_file: ModelFile, bags: BagsFile, as_json: common.Json = False) -> None:
    """Print the log-likelihood of each bag: a line with the number and the name of the item."""
    with common.errors():
        model = common.load_grid(model_file)
        X, names = bags_of(bags, model)
        values = model.score_samples(X).tolist()
    _print_each([f"{value:.6f}" for value in values], values, "score", names, as_json)


def complete_shapes(X: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Complete the shapes of a grid: by the sections of a collection, and by a size that suits the number of bags.

    Parameters
    ----------
    X : Collection, ndarray or csr_array
        The bags.
    shapes : dict of str to tuple of int
        The shapes that the user chose.

    Returns
    -------
    shapes : dict of str to tuple of int
        The same with grid, window and sections.
    """
    from countinggrids.core.geometry import suggest

    if isinstance(X, countinggrids.Collection):
        n_bags, n_features = len(X), len(X.vocabulary)
        shapes = ({"sections": X.sections} if len(X.sections) > 1 else {}) | shapes
    else:
        n_bags, n_features = X.shape[0], X.shape[1] // prod(shapes.get("paint") or shapes.get("sections") or (1,))
    if "grid" not in shapes:
        grid, window = suggest(n_bags, max(n_features, 1), shapes.get("sections") or (1, 1), shapes.get("window"))
        shapes = shapes | {"grid": grid, "window": window}
        common.log(
            f"grid {_joined(grid)} and window {_joined(window)} chosen for {n_bags} bags; use --grid and --window for "
            "others"
        )
    return {"window": tuple(min(8, n) for n in shapes["grid"])} | shapes


def _componential_shapes(X: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Add the sections of a collection, and windows that they divide; the rest is the default of the model."""
    if "paint" in shapes:
        raise ValueError("--paint must not be used with --model componential; use --sections.")
    if isinstance(X, countinggrids.Collection) and len(X.sections) > 1:
        shapes = {"sections": X.sections} | shapes
    if "window" in shapes or "sections" not in shapes:
        return shapes
    return shapes | {"window": tuple(max(1, -(-2 // s)) * s for s in shapes["sections"])}


def _delayed_blocks(path: Path, X: Any, shapes: dict[str, tuple[int, ...]]) -> list[Any]:
    """Return the counts of a file as blocks that Dask workers read, at the finest sections of the grid."""
    from dask.delayed import delayed

    from countinggrids.backends.dask.arrays import of_file
    from countinggrids.data.counts import coarsen

    blocks = of_file(path)
    if not isinstance(X, countinggrids.Collection):
        return blocks
    finest = shapes.get("paint") or shapes.get("sections") or X.sections
    sections = (len(X.vocabulary), X.sections, finest)
    return [delayed(coarsen)(block, *sections, pure=False) for block in blocks]


def bags_of(path: Path, model: "GridModel") -> tuple[Any, list[str] | None]:
    """Read counts for a fitted model, at its sections, and the names of the items."""
    X = read(path)
    if not isinstance(X, countinggrids.Collection):
        return X, None
    collection = X.for_model(model)
    return collection.counts, _names(collection)


def _print_each(texts: list[str], values: list[Any], what: str, names: list[str] | None, as_json: bool) -> None:
    """Print one value to a line with the name of its item, or all as JSON; plain counts have no names."""
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
    from countinggrids.data import container, readers

    return readers.load(path) if path.suffix in container.COUNTS else countinggrids.Collection.load(path)


def _joined(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _counts_facts(counts: Any) -> dict[str, Any]:
    """Return a description of a table of counts."""
    n_bags, n_columns = counts.shape
    tokens = bag.tokens_of(counts)
    return {"class": "Counts", "bags": n_bags, "columns": n_columns} | tokens


def _facts(model: Any) -> dict[str, Any]:
    """Return a description of a model, or of another estimator."""
    if not hasattr(model, "pi_"):
        return {"class": type(model).__name__, "columns": getattr(model, "n_features_in_", None)}
    shown = ("grid", "window", "sections", "paint", "n_components")
    parameters = {name: value for name, value in model.get_params().items() if name in shown and value is not None}
    fitted = {
        "capacity": round(model.capacity, 3),
        "columns": model.n_features_in_,
        "features": model.pi_.shape[-1],
        "iterations": model.n_iter_,
        "converged": getattr(model, "converged_", None),
        "objective_per_token": float(model.history_[-1]) if len(model.history_) else None,
    }
    return {"class": type(model).__name__} | parameters | fitted
