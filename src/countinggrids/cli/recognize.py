"""`countinggrids recognize`: the places of a second walk among the frames of a first one."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common, progress

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection

Walk = Annotated[Path, typer.Argument(help="A collection that `bag` wrote: frames in their order.", exists=True)]
K = (1, 5, 10)


def recognize(
    reference: Walk,
    query: Walk,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="A .csv or .npy file with the number of the reference frame of each query frame, from 0, and -1 for "
            "places that are not there. By default frames agree by number.",
            exists=True,
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Frames up to which a match is correct.")] = 2,
    use: Annotated[str, typer.Option(help="What is compared: auto chooses between bags, grid and sum.")] = "auto",
    grid: Annotated[str | None, typer.Option(help="Cells along each axis; by default chosen by the frames.")] = None,
    window: Annotated[str | None, typer.Option(help="Cells along each axis of the window.")] = None,
    direction: Annotated[str, typer.Option(help="Direction of the walk: forward, backward or both.")] = "forward",
    width: Annotated[int, typer.Option(min=1, help="Largest step in frames from one query to the next.")] = 2,
    jump: Annotated[float, typer.Option(help="Probability of a jump to any frame.")] = 0.01,
    gamma: Annotated[float | None, typer.Option(help="Weight of the similarities; chosen by default.")] = None,
    new_place: Annotated[bool, typer.Option("--new-place", help="Report the probability of a new place.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the match of each frame: .csv or .json.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Where to draw the similarity matrix, such as walk.png.")] = None,
    curve: Annotated[Path | None, typer.Option(help="Where to draw precision and recall.")] = None,
    film: Annotated[
        Path | None, typer.Option(help="Where to write a film of the walk with the map beside it: .gif, .mp4, .webm.")
    ] = None,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Recognize the frames of a walk among those of a reference walk, alone and filtered along the walk."""
    with common.errors():
        _check_files(reference, query, truth, output, plot, curve, film, force)
        from countinggrids.cli import walks
        from countinggrids.meta import PlaceRecognizer, PlaceTracker

        first, second = walks.load_pair(reference, query)
        matches = walks.matches_of(first, second, truth, tolerance)
        if film is not None:
            walks.check_film(film, first, second)
        recognizer = PlaceRecognizer(
            use,
            grids=_grid(first, grid, window),
            sections=first.sections if len(first.sections) > 1 else 1,
            tolerance=tolerance,
            random_state=seed,
        )
        tracker = PlaceTracker(
            recognizer,
            transitions="walk",
            direction=direction,
            width=width,
            jump=jump,
            gamma="cv" if gamma is None else gamma,
            tolerance=tolerance,
            new_place=new_place,
        )
        with progress.spinner("choosing on the reference walk"):
            tracker.fit(first.counts, None, first.items.run_lengths())
        with progress.spinner("recognizing"):
            similarity = tracker.similarity(second.counts)
            posterior = tracker.filter(second.counts, second.items.run_lengths())
        known = posterior[:, : len(first)]
        facts = _facts(tracker, first, second, similarity, known, matches)
        if output is not None:
            walks.write_table(output, first, second, similarity, posterior, matches)
        if plot is not None:
            from countinggrids.plot import similarity_matrix

            common.save_picture(plot, similarity_matrix(similarity, matches, known.argmax(axis=1)))
        if curve is not None:
            from countinggrids.plot import precision_recall_curve

            curves = {"alone": similarity, "filtered": known}
            common.save_picture(curve, precision_recall_curve(curves, matches))
        if film is not None:
            with progress.spinner("drawing the film"):
                walks.write_film(film, tracker.classifier_, first, second, known)
    _print(facts, as_json)


def _grid(first: "Collection", grid: str | None, window: str | None) -> Any:
    """Return a grid with the shapes of the options, or None for the default."""
    if grid is None and window is None:
        return None
    from countinggrids.core.geometry import suggest

    sections = first.sections if max(first.sections) > 1 else None
    given = None if window is None else common.shape(window, "window")
    chosen = suggest(len(first), len(first.vocabulary), sections or (1, 1), given)
    return countinggrids.CountingGrid(chosen[0] if grid is None else common.shape(grid, "grid"), chosen[1], sections)


def _facts(tracker: Any, first: Any, second: Any, similarity: Any, filtered: Any, matches: Any) -> dict[str, Any]:
    """Return what is printed."""
    from countinggrids.meta import precision_recall, recall_at

    def measured(scores: Any) -> dict[str, Any]:
        found = precision_recall(scores, matches)
        has_truth = matches.any()  # without a query in the reference, recall is unknown
        recall = {
            f"recall_at_{k}": round(value, 4) if has_truth else None
            for k, value in recall_at(scores, matches, K).items()
        }
        return recall | {
            "precision_recall_area": round(found.area, 4),
            "recall_at_full_precision": round(found.recall_at_full_precision, 4),
            "precision": found.precision.round(4).tolist(),
            "recall": found.recall.round(4).tolist(),
        }

    chosen = tracker.classifier_
    return {
        "reference_frames": len(first),
        "query_frames": len(second),
        "compared": chosen.choice_.name,
        "sections": "x".join(map(str, chosen.sections_)),
        "gamma": tracker.gamma_,
        **measured(similarity),
        "filtered": measured(filtered),
    }


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts))
        return
    curves = ("precision", "recall", "filtered")
    plain = {name: value for name, value in facts.items() if name not in curves}
    filtered = {f"filtered_{name}": value for name, value in facts["filtered"].items() if name not in curves}
    common.print_facts(plain | filtered, as_json=False)


def _check_files(
    reference: Path,
    query: Path,
    truth: Path | None,
    output: Path | None,
    plot: Path | None,
    curve: Path | None,
    film: Path | None,
    force: bool,
) -> None:
    """Raise, before any work, about files that cannot be written."""
    if output is not None and output.suffix not in (".csv", ".json"):
        raise ValueError(f"--output={output} must end in .csv or .json; use another name.")
    for name, picture in (("plot", plot), ("curve", curve)):
        if picture is not None:
            common.check_picture(picture, name, force)
    for path in (output, film):
        if path is not None:
            common.check_output(path, force)
    common.check_apart(
        [("REFERENCE", reference), ("QUERY", query), ("--truth", truth)],
        [("--output", output), ("--plot", plot), ("--curve", curve), ("--film", film)],
    )
