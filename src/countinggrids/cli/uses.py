"""`countinggrids classify`, `search`, `track` and `cluster`."""

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common, labelled

if TYPE_CHECKING:
    from countinggrids.collection import Collection

CollectionFile = Annotated[
    Path, typer.Argument(help="A collection that `bag` wrote; its items have labels.", exists=True, dir_okay=False)
]
TestFile = Annotated[
    Path | None,
    typer.Option("--test", help="A collection to try on; otherwise the items whose split is test.", exists=True),
]
Table = Annotated[Path, typer.Option("--output", "-o", help="Where to write the table: .csv or .json.")]
Plot = Annotated[Path | None, typer.Option(help="Where to draw a picture, such as result.png.")]
GridShape = Annotated[str | None, typer.Option("--grid", help="Cells along each axis; chosen if left out.")]
WindowShape = Annotated[str | None, typer.Option("--window", help="Cells along each axis of the window.")]
Sections = Annotated[str | None, typer.Option(help="Sections, such as 2x2; the collection's if left out.")]
Tokens = Annotated[float | None, typer.Option(help="Scale every bag to so many tokens; 100 is good for images.")]
Power = Annotated[
    float, typer.Option(help="Raise counts to this power before they are scaled; 0.6 is good for images.")
]
Restarts = Annotated[int, typer.Option("--restarts", min=1, help="Models a class, averaged.")]


def classify(
    bags: CollectionFile,
    output: Table,
    test: TestFile = None,
    grid: GridShape = None,
    window: WindowShape = None,
    sections: Sections = None,
    tokens: Tokens = None,
    power: Power = 1.0,
    restarts: Restarts = 1,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Learn a grid a class, and tell the class of each test item."""
    with common.errors():
        _check_outputs(output, plot, force)
        from countinggrids.plot import confusion

        train, tried = labelled.train_and_test(bags, test, sections)
        labels = labelled.labels_of(train)
        truth = labelled.truth_of(tried, labels)
        if truth is None and plot is not None:
            raise ValueError("--plot needs the labels of the test items; wanted a column label; leave --plot out")
        per_class = len(train) // max(len(set(labels.tolist())), 1)
        model = _pipeline(_grid(train, per_class, grid, window), tokens, power, restarts, seed)
        with common.working("learning a grid a class"):
            model.fit(train.counts, labels)
        with common.working("classifying"):
            shares = model.predict_proba(tried.counts)
        predicted = model.classes_[shares.argmax(axis=1)]
        columns = _names(tried) | ({} if truth is None else {"label": truth})
        _write_table(output, columns | {"predicted": predicted, "probability": shares.max(axis=1)})
        facts: dict[str, Any] = {"trained_on": len(train), "classes": len(model.classes_), "tried_on": len(tried)}
        if truth is not None:
            facts["right"] = round(float((truth == predicted).mean()), 4)
            _draw(plot, lambda: confusion(truth, predicted))
    common.print_facts(facts | {"table": str(output)}, as_json)


def search(
    bags: CollectionFile,
    output: Table,
    grids: Annotated[str, typer.Option(help="Grid sizes to try, with commas: 8,12,16 or 8x12.")] = "4,6,8,10,15,20",
    windows: Annotated[str, typer.Option(help="Window sizes to try.")] = "2,4,8",
    sections: Annotated[str, typer.Option(help="Tessellations to try.")] = "1",
    paint: Annotated[str, typer.Option(help="Finer tessellations to lay down; none is the one compared.")] = "none",
    tokens: Annotated[str, typer.Option(help="Tokens to scale bags to; none leaves them.")] = "none",
    powers: Annotated[str, typer.Option(help="Powers to raise counts to.")] = "1",
    capacities: Annotated[
        str | None, typer.Option(help="Limits of the capacity, such as 1.5,20; 1.5 and half the bags if left out.")
    ] = None,
    max_iters: Annotated[str, typer.Option(help="Iterations to stop after; none is the grid's own.")] = "none",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 3,
    keep: Annotated[float, typer.Option(help="Share of candidates that stays after each fold.")] = 0.5,
    restarts: Restarts = 1,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Choose grid, window and sections by cross-validation on the training items."""
    with common.errors():
        _check_outputs(output, plot, force)
        from countinggrids.plot import capacity

        collection = countinggrids.Collection.load(bags)
        if "split" in collection.items and (collection.items["split"] == "train").any():
            collection = collection.take(collection.items["split"] == "train")
        labels = labelled.labels_if_any(collection)
        racing = countinggrids.CapacitySearch(
            grids=_sizes(grids, "grids"),
            windows=_sizes(windows, "windows"),
            sections=_sizes(sections, "sections"),
            paint=[None if part.strip() == "none" else _sizes(part, "paint")[0] for part in paint.split(",")],
            tokens=_numbers(tokens, "tokens"),
            powers=[1.0 if power is None else power for power in _numbers(powers, "powers")],
            capacities=_limits(capacities),
            max_iters=[None if n is None else int(n) for n in _numbers(max_iters, "max-iters")],
            x_sections=collection.sections if len(collection.sections) > 1 else 1,
            cv=folds,
            keep=keep,
            n_init=restarts,
            random_state=seed,
            refit=False,
        )
        with common.counting("candidates and folds") as watch:
            racing.fit(collection.counts, labels, watch=watch)
        _write_table(output, {name: [_text(value) for value in values] for name, values in racing.results_.items()})
        _draw(plot, lambda: capacity(racing.results_))
    best = {name: _text(value) for name, value in racing.best_candidate_._asdict().items() if value is not None}
    common.print_facts(best | {"score": round(racing.best_score_, 4), "table": str(output)}, as_json)


def track(
    bags: CollectionFile,
    output: Table,
    test: TestFile = None,
    grid: GridShape = None,
    window: WindowShape = None,
    sections: Sections = None,
    tokens: Tokens = None,
    power: Power = 1.0,
    restarts: Restarts = 1,
    gamma: Annotated[
        float | None, typer.Option(help="Weight of the likelihoods; by cross-validation if left out.")
    ] = None,
    transitions: Annotated[
        str,
        typer.Option(help="How places follow one another: labels counts, em goes on from there; or a .csv matrix."),
    ] = "labels",
    start: Annotated[str, typer.Option(help="Where sequences begin: uniform, or labels as in training.")] = "uniform",
    unknown: Annotated[
        float | None,
        typer.Option(help="Log-likelihood per token, below that of training, from which a frame is of no known place."),
    ] = None,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Follow places along sequences of frames: labels are places, the column sequence tells walks apart."""
    with common.errors():
        _check_outputs(output, plot, force)
        from countinggrids.plot import ribbon

        train, tried = labelled.train_and_test(bags, test, sections)
        labels = labelled.labels_of(train)
        truth = labelled.truth_of(tried, labels)
        per_place = len(train) // max(len(set(labels.tolist())), 1)
        places = _pipeline(_grid(train, per_place, grid, window), tokens, power, restarts, seed)
        tracker = countinggrids.PlaceTracker(
            places,
            gamma="cv" if gamma is None else gamma,
            transitions=_transitions(transitions),
            start=start,
            unknown=unknown,
        )
        with common.working("learning a grid a place"):
            tracker.fit(train.counts, labels, train.items.run_lengths())
        lengths = tried.items.run_lengths()
        filtered, smoothed = tracker.filter(tried.counts, lengths), tracker.smooth(tried.counts, lengths)
        alone = tracker.filter(tried.counts, [1] * len(tried))
        found = {name: tracker.classes_[shares.argmax(axis=1)]
                 for name, shares in (("alone", alone), ("filtered", filtered), ("smoothed", smoothed))}  # fmt: skip
        found["viterbi"] = tracker.viterbi(tried.counts, lengths)
        columns = _names(tried) | ({} if truth is None else {"label": truth})
        _write_table(output, columns | found | {"probability": filtered.max(axis=1)})
        _draw(plot, lambda: ribbon(filtered, tracker.classes_, truth))
        facts: dict[str, Any] = {"frames": len(tried), "places": len(tracker.classes_), "gamma": tracker.gamma_}
        if truth is not None:
            facts |= {f"right_{name}": round(float((each == truth).mean()), 4) for name, each in found.items()}
    common.print_facts(facts | {"table": str(output)}, as_json)


def cluster(
    bags: Annotated[Path, typer.Argument(help="A collection that `bag` wrote.", exists=True, dir_okay=False)],
    output: Table,
    model_file: Annotated[
        Path | None, typer.Option("--model", help="A grid learnt from it; otherwise one is learnt.", exists=True)
    ] = None,
    n_clusters: Annotated[
        int | None, typer.Option("--clusters", min=1, help="How many; hills decide if left out.")
    ] = None,
    grid: GridShape = None,
    window: WindowShape = None,
    words: Annotated[int, typer.Option(min=1, help="Telling features to name for each cluster.")] = 5,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Cut a grid into regions, and tell which region each item lies in."""
    with common.errors():
        _check_outputs(output, plot, force)
        from countinggrids.plot import regions

        collection = countinggrids.Collection.load(bags)
        model: Any
        if model_file is None:
            model = _grid(collection, len(collection), grid, window).set_params(random_state=seed)
        else:
            model = countinggrids.load(model_file)
            collection = collection.for_model(model)
        if plot is not None and len(model._geometry().grid) != 2:
            raise ValueError("--plot draws grids with two axes; wanted such a grid; leave --plot out")
        with common.working("learning the grid"):
            clusters = countinggrids.GridClusters(model, n_clusters=n_clusters).fit(collection.counts)
        telling = [", ".join(names) for names in clusters.features(collection.vocabulary.names, words)]
        _write_table(output, _names(collection) | {"cluster": clusters.labels_})
        _draw(plot, lambda: regions(clusters.usage_, clusters.regions_, [text.replace(", ", "\n") for text in telling]))
        sizes = [int((clusters.labels_ == c).sum()) for c in range(clusters.n_clusters_)]
    if as_json:
        listed = [{"size": n, "features": text.split(", ")} for n, text in zip(sizes, telling, strict=True)]
        print(json.dumps({"clusters": listed, "table": str(output)}))
        return
    for number, (n, text) in enumerate(zip(sizes, telling, strict=True)):
        print(f"{number:4} {n:7} items   {text}")


def _grid(collection: "Collection", n_bags: int, grid: str | None, window: str | None) -> Any:
    """Make the grid that the options ask for, of a size that suits so many bags."""
    from countinggrids.geometry import suggest

    sections = collection.sections if max(collection.sections) > 1 else None
    wanted = None if window is None else common.shape(window, "window")
    chosen = suggest(n_bags, len(collection.vocabulary), sections or (1, 1), wanted)
    if grid is None:
        common.say(f"grid {_text(chosen[0])} and window {_text(chosen[1])} chosen for {n_bags} bags a model")
    shapes = (chosen[0] if grid is None else common.shape(grid, "grid"), chosen[1])
    return countinggrids.CountingGrid(*shapes, sections)


def _pipeline(grid: Any, tokens: float | None, power: float, restarts: int, seed: int) -> Any:
    from sklearn.pipeline import make_pipeline

    scaler = countinggrids.BagScaler(tokens, power)
    return make_pipeline(scaler, countinggrids.GridClassifier(grid, n_init=restarts, random_state=seed))


def _names(collection: "Collection") -> dict[str, Any]:
    return {name: collection.items[name] for name in ("path", "title") if name in collection.items}


def _sizes(text: str, name: str) -> list[Any]:
    shapes = [common.shape(part, name) for part in text.split(",")]
    return [shape[0] if len(shape) == 1 else shape for shape in shapes]


def _numbers(text: str, name: str) -> list[float | None]:
    try:
        return [None if part.strip() == "none" else float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--{name} is {text!r}; wanted numbers or none with commas; give for instance 100,none"
        ) from None


def _limits(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    limits = [number for number in _numbers(text, "capacities") if number is not None]
    if len(limits) != 2 or text.count(",") != 1:
        raise ValueError(f"--capacities is {text!r}; wanted the lowest and the highest; give for instance 1.5,20")
    return limits[0], limits[1]


def _transitions(given: str) -> Any:
    """Read how places follow one another: by name, or a table of numbers from a file."""
    if given in ("labels", "em"):
        return given
    import numpy as np

    try:
        return np.loadtxt(given, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--transitions is {given!r} ({error}); wanted labels, em or a .csv file with a row of numbers a place"
        ) from None


def _text(value: Any) -> Any:
    return "x".join(map(str, value)) if isinstance(value, tuple) else value


def _check_outputs(table: Path, plot: Path | None, force: bool) -> None:
    if table.suffix not in (".csv", ".json"):
        raise ValueError(f"--output is {table}; wanted a name that ends in .csv or .json")
    common.check_output(table, force)
    if plot is not None:
        common.check_picture(plot, "plot", force)


def _write_table(path: Path, columns: dict[str, Any]) -> None:
    """Write rows as CSV or JSON, whole or not at all."""
    from countinggrids import files

    rows = [dict(zip(columns, values, strict=True)) for values in zip(*map(list, columns.values()), strict=True)]
    rows = [{name: value.item() if hasattr(value, "item") else value for name, value in row.items()} for row in rows]
    if path.suffix == ".json":
        text = json.dumps(rows)
    else:
        buffer = io.StringIO(newline="")
        writer = csv.DictWriter(buffer, list(columns))
        writer.writeheader()
        writer.writerows(rows)
        text = buffer.getvalue()
    files.write_text(path, text)


def _draw(path: Path | None, make: Any) -> None:
    if path is not None:
        common.save_picture(path, make())
