"""`countinggrids classify`, `search`, `track` and `cluster`."""

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common, labeled, progress

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection

CollectionFile = Annotated[
    Path, typer.Argument(help="A collection that `bag` wrote, with labels.", exists=True, dir_okay=False)
]
TestFile = Annotated[
    Path | None,
    typer.Option("--test", help="A collection of test items; by default the items whose split is test.", exists=True),
]
Table = Annotated[Path, typer.Option("--output", "-o", help="Where to write the table: .csv or .json.")]
Plot = Annotated[Path | None, typer.Option(help="Where to draw a figure, such as result.png.")]
GridShape = Annotated[
    str | None, typer.Option("--grid", help="Cells along each axis; by default chosen by the number of bags.")
]
WindowShape = Annotated[str | None, typer.Option("--window", help="Cells along each axis of the window.")]
Sections = Annotated[str | None, typer.Option(help="Sections, such as 2x2; by default those of the collection.")]
Tokens = Annotated[
    float | None, typer.Option(help="Number of tokens that each bag is scaled to, such as 100 for images.")
]
Power = Annotated[float, typer.Option(help="Power of the counts before they are scaled, such as 0.6 for images.")]
Estimators = Annotated[int, typer.Option("--estimators", min=1, help="Number of models per class, averaged.")]


def classify(
    bags: CollectionFile,
    output: Table,
    test: TestFile = None,
    grid: GridShape = None,
    window: WindowShape = None,
    sections: Sections = None,
    tokens: Tokens = None,
    power: Power = 1.0,
    estimators: Estimators = 1,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Fit a grid per class, and predict the class of each test item."""
    with common.errors():
        _check_outputs(output, plot, force, ("BAGS", bags), ("--test", test))
        from countinggrids.plot import confusion

        train, held_out = labeled.train_and_test(bags, test, sections)
        labels = labeled.labels_of(train)
        truth = labeled.truth_of(held_out, labels)
        if truth is None and plot is not None:
            raise ValueError("--plot needs labels of the test items; leave --plot out.")
        per_class = len(train) // max(len(set(labels.tolist())), 1)
        model = _pipeline(_grid(train, per_class, grid, window), tokens, power, estimators, seed)
        with progress.spinner("fitting a grid per class"):
            model.fit(train.counts, labels)
        with progress.spinner("classifying"):
            probabilities = model.predict_proba(held_out.counts)
        predicted = model.classes_[probabilities.argmax(axis=1)]
        columns = _names(held_out) | ({} if truth is None else {"label": truth})
        _write_table(output, columns | {"predicted": predicted, "probability": probabilities.max(axis=1)})
        facts: dict[str, Any] = {"train_items": len(train), "classes": len(model.classes_), "test_items": len(held_out)}
        if truth is not None:
            facts["accuracy"] = round(float((truth == predicted).mean()), 4)
            _draw(plot, lambda: confusion(truth, predicted))
    common.print_facts(facts | {"table": str(output)}, as_json)


def search(
    bags: CollectionFile,
    output: Table,
    grids: Annotated[str, typer.Option(help="Grid sizes, separated by commas: 8,12,16 or 8x12.")] = "4,6,8,10,15,20",
    windows: Annotated[str, typer.Option(help="Window sizes.")] = "2,4,8",
    sections: Annotated[str, typer.Option(help="Sections.")] = "1",
    paint: Annotated[str, typer.Option(help="Finer sections that are painted; none for the same.")] = "none",
    tokens: Annotated[
        str, typer.Option(help="Numbers of tokens that bags are scaled to; none leaves them as they are.")
    ] = "none",
    powers: Annotated[str, typer.Option(help="Powers of the counts.")] = "1",
    capacities: Annotated[
        str | None,
        typer.Option(help="Limits of the capacity, such as 1.5,20; 1.5 and half the bags by default."),
    ] = None,
    max_iters: Annotated[str, typer.Option(help="Largest numbers of iterations; none for that of the grid.")] = "none",
    folds: Annotated[int, typer.Option(min=2, help="Number of folds of the cross-validation.")] = 3,
    keep: Annotated[float, typer.Option(help="Fraction of the candidates that stays after each fold.")] = 0.5,
    estimators: Estimators = 1,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Choose grid, window and sections by cross-validation on the training items."""
    with common.errors():
        _check_outputs(output, plot, force, ("BAGS", bags))
        collection = countinggrids.Collection.load(bags)
        if "split" in collection.items and (collection.items["split"] == "train").any():
            collection = collection.take(collection.items["split"] == "train")
        labels = labeled.labels_if_any(collection)
        found = countinggrids.CapacitySearch(
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
            n_estimators=estimators,
            random_state=seed,
            refit=False,
        )
        with progress.count_bar("candidates and folds") as callback:
            found.fit(collection.counts, labels, callback=callback)
        columns = {
            name.removeprefix("param_"): values for name, values in found.cv_results_.items() if name != "params"
        }
        _write_table(output, {name: [_text(value) for value in values] for name, values in columns.items()})
        _draw(plot, found.plot)
    best = {name: _text(value) for name, value in found.best_params_.items() if value is not None}
    common.print_facts(best | {"score": round(found.best_score_, 4), "table": str(output)}, as_json)


def track(
    bags: CollectionFile,
    output: Table,
    test: TestFile = None,
    grid: GridShape = None,
    window: WindowShape = None,
    sections: Sections = None,
    tokens: Tokens = None,
    power: Power = 1.0,
    estimators: Estimators = 1,
    gamma: Annotated[
        float | None, typer.Option(help="Weight of the likelihoods; by cross-validation by default.")
    ] = None,
    transitions: Annotated[
        str,
        typer.Option(
            help="Transitions: labels counts them, walk has steps along a reference walk, learn re-estimates them, "
            "or a .csv file; by default walk if every frame has a label of its own, and labels otherwise."
        ),
    ] = "auto",
    start: Annotated[str, typer.Option(help="Distribution of the first place: uniform, or labels.")] = "uniform",
    unknown: Annotated[
        float | None,
        typer.Option(help="Log-likelihood per token, below that of training, from which a place is unknown."),
    ] = None,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Track places along sequences of frames: labels are places, and the column sequence separates walks."""
    with common.errors():
        _check_outputs(output, plot, force, ("BAGS", bags), ("--test", test), ("--transitions", Path(transitions)))
        from countinggrids.plot import ribbon

        train, held_out = labeled.train_and_test(bags, test, sections)
        labels = labeled.labels_of(train)
        truth = labeled.truth_of(held_out, labels)
        n_places = len(set(labels.tolist()))
        is_walk = n_places == len(train)
        shapes = _grid(train, len(train) if is_walk else len(train) // max(n_places, 1), grid, window)
        places = _walk(shapes, tokens, power, seed) if is_walk else _pipeline(shapes, tokens, power, estimators, seed)
        tracker = countinggrids.PlaceTracker(
            places,
            gamma="cv" if gamma is None else gamma,
            transitions=_transitions(transitions),
            start=start,
            unknown=unknown,
        )
        with progress.spinner("fitting the grid" if is_walk else "fitting a grid per place"):
            tracker.fit(train.counts, labels, train.items.run_lengths())
        lengths = held_out.items.run_lengths()
        filtered, smoothed = tracker.filter(held_out.counts, lengths), tracker.smooth(held_out.counts, lengths)
        alone = tracker.filter(held_out.counts, [1] * len(held_out))
        posteriors = {"alone": alone, "filtered": filtered, "smoothed": smoothed}
        found = {name: tracker.classes_[each.argmax(axis=1)] for name, each in posteriors.items()}
        found["viterbi"] = tracker.viterbi(held_out.counts, lengths)
        columns = _names(held_out) | ({} if truth is None else {"label": truth})
        _write_table(output, columns | found | {"probability": filtered.max(axis=1)})
        _draw(plot, lambda: ribbon(filtered, tracker.classes_, truth))
        facts: dict[str, Any] = {"frames": len(held_out), "places": len(tracker.classes_), "gamma": tracker.gamma_}
        if truth is not None:
            facts |= {f"accuracy_{name}": round(float((each == truth).mean()), 4) for name, each in found.items()}
    common.print_facts(facts | {"table": str(output)}, as_json)


def cluster(
    bags: Annotated[Path, typer.Argument(help="A collection that `bag` wrote.", exists=True, dir_okay=False)],
    output: Table,
    model_file: Annotated[
        Path | None, typer.Option("--model", help="A model of the collection; fitted by default.", exists=True)
    ] = None,
    n_clusters: Annotated[
        int | None,
        typer.Option("--clusters", min=1, help="Number of clusters; by default one per hill of the usage."),
    ] = None,
    grid: GridShape = None,
    window: WindowShape = None,
    words: Annotated[
        int, typer.Option(min=1, help="Number of distinctive features that are named for each cluster.")
    ] = 5,
    plot: Plot = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Partition a grid into clusters; write the row, the place and the cluster of each item, and print the clusters."""
    with common.errors():
        _check_outputs(output, plot, force, ("BAGS", bags), ("--model", model_file))
        from countinggrids.meta import cluster_tables
        from countinggrids.plot import regions

        collection = countinggrids.Collection.load(bags)
        model: Any
        if model_file is None:
            model = _grid(collection, len(collection), grid, window).set_params(random_state=seed)
        else:
            model = common.load_grid(model_file)
            collection = collection.for_model(model)
        shape = model.grid if model_file is None else model.geometry_.grid
        if plot is not None and len(shape) != 2:
            raise ValueError("--plot needs a grid with two axes; leave --plot out.")
        with progress.spinner("fitting the grid"):
            clusters = countinggrids.GridClusters(model, n_clusters=n_clusters).fit(collection.counts)
        distinctive = [", ".join(names) for names in clusters.features(collection.vocabulary.names, words)]
        columns = cluster_tables.item_columns(clusters, collection)
        _write_table(output, {name: values for name, values in columns.items() if name != "text"})
        _draw(
            plot,
            lambda: regions(clusters.usage_, clusters.regions_, [text.replace(", ", "\n") for text in distinctive]),
        )
        sizes = [int((clusters.labels_ == c).sum()) for c in range(clusters.n_clusters_)]
    if as_json:
        listed = [{"size": n, "features": text.split(", ")} for n, text in zip(sizes, distinctive, strict=True)]
        print(json.dumps({"clusters": listed, "table": str(output)}))
        return
    for number, (n, text) in enumerate(zip(sizes, distinctive, strict=True)):
        print(common.one_line(f"{number:4} {n:7} items   {text}"))


def _grid(collection: "Collection", n_bags: int, grid: str | None, window: str | None) -> Any:
    """Return a grid with the shapes of the options, or of a size that suits the number of bags."""
    from countinggrids.core.geometry import suggest

    sections = collection.sections if max(collection.sections) > 1 else None
    given = None if window is None else common.shape(window, "window")
    chosen = suggest(n_bags, len(collection.vocabulary), sections or (1, 1), given)
    if grid is None:
        common.log(f"grid {_text(chosen[0])} and window {_text(chosen[1])} chosen for {n_bags} bags per model")
    shapes = (chosen[0] if grid is None else common.shape(grid, "grid"), chosen[1])
    return countinggrids.CountingGrid(*shapes, sections)


def _pipeline(grid: Any, tokens: float | None, power: float, estimators: int, seed: int) -> Any:
    from sklearn.pipeline import make_pipeline

    scaler = countinggrids.BagScaler(tokens, power)
    return make_pipeline(scaler, countinggrids.GridClassifier(grid, n_estimators=estimators, random_state=seed))


def _walk(grid: Any, tokens: float | None, power: float, seed: int) -> Any:
    """Return neighbors on one grid, for a reference walk with one frame a place."""
    from sklearn.pipeline import make_pipeline

    grid.set_params(random_state=seed)
    return make_pipeline(countinggrids.BagScaler(tokens, power), countinggrids.GridNeighbors(grid, metric="likelihood"))


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
            f"--{name}={text} must be numbers or none, separated by commas; use for instance --{name}=100,none."
        ) from None


def _limits(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    limits = [number for number in _numbers(text, "capacities") if number is not None]
    if len(limits) != 2 or text.count(",") != 1:
        raise ValueError(f"--capacities={text} must be two numbers; use for instance --capacities=1.5,20.")
    return limits[0], limits[1]


def _transitions(given: str) -> Any:
    """Read the transition matrix: by name, or from a file."""
    if given in ("auto", "labels", "walk", "learn", "em"):
        return given
    import numpy as np

    try:
        return np.loadtxt(given, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--transitions={given} must be auto, labels, walk, learn or a .csv file with a row for each place "
            f"({error}); correct the path or the file."
        ) from None


def _text(value: Any) -> Any:
    return "x".join(map(str, value)) if isinstance(value, tuple) else value


def _check_outputs(table: Path, plot: Path | None, force: bool, *inputs: tuple[str, Path | None]) -> None:
    if table.suffix not in (".csv", ".json"):
        raise ValueError(f"--output={table} must end in .csv or .json; use another name.")
    common.check_output(table, force)
    if plot is not None:
        common.check_picture(plot, "plot", force)
    common.check_apart(inputs, [("--output", table), ("--plot", plot)])


def _write_table(path: Path, columns: dict[str, Any]) -> None:
    """Write rows as CSV or JSON, whole or not at all."""
    from countinggrids.data import container

    rows = [dict(zip(columns, values, strict=True)) for values in zip(*map(list, columns.values()), strict=True)]
    rows = [{name: _plain(value) for name, value in row.items()} for row in rows]
    if path.suffix == ".json":
        text = json.dumps(rows)
    else:
        buffer = io.StringIO(newline="")
        writer = csv.DictWriter(buffer, list(columns))
        writer.writeheader()
        writer.writerows(rows)
        text = buffer.getvalue()
    container.write_text(path, text)


def _plain(value: Any) -> Any:
    """Return a value of Python; a number that is missing is None, for JSON has no NaN."""
    plain = value.item() if hasattr(value, "item") else value
    return None if plain != plain else plain


def _draw(path: Path | None, make: Any) -> None:
    if path is not None:
        common.save_picture(path, make())
