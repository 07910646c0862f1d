"""`countinggrids plot` and `movie`: figures of a model, and a film of its training."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common, models, progress

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection
    from countinggrids.models.base import GridModel


class What(StrEnum):
    """What to draw."""

    grid = "grid"
    words = "words"
    usage = "usage"
    prior = "prior"
    posterior = "posterior"
    history = "history"


def plot(
    model_file: models.ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to draw: .png, .pdf or .svg.")],
    bags: Annotated[
        Path | None, typer.Argument(help="The bags: a collection, or plain counts.", exists=True, dir_okay=False)
    ] = None,
    what: Annotated[
        What | None,
        typer.Option(help="What to draw; by default the painted grid or its words, without bags the prior."),
    ] = None,
    bag: Annotated[int, typer.Option(min=0, help="Number of the bag for the posterior, from 0.")] = 0,
    n_windows: Annotated[int, typer.Option("--windows", min=0, help="Number of bags whose windows are outlined.")] = 0,
    roll: Annotated[
        bool, typer.Option("--roll", help="Shift the grid so that its least used cells are at the border.")
    ] = False,
    tiles: Annotated[str, typer.Option(help="Repeat the torus, such as 2x2.")] = "1x1",
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Draw a model: its grid painted with features or words, usage, prior, the posterior of a bag, or history."""
    with common.errors():
        common.check_picture(output, "output", force)
        common.check_apart([("MODEL_FILE", model_file), ("BAGS", bags)], [("--output", output)])
        view: dict[str, Any] = {"roll": roll, "tiles": common.shape(tiles, "tiles")}
        model = common.load_grid(model_file)
        X, vocabulary = (None, None) if bags is None else _bags(bags, model)
        kind = getattr(vocabulary, "kind", None)
        chosen = what or (What.prior if kind is None else What.words if kind == "words" else What.grid)
        _check(chosen, X, vocabulary, bag, n_windows)
        with progress.spinner("drawing"):
            ax = _drawn(chosen, model, X, vocabulary, bag, view)
            if X is not None and n_windows and chosen != What.history:
                from countinggrids.plot import windows

                windows(model, model.locate(X[:n_windows]), ax, **view)
            common.save_picture(output, ax)
    common.print_facts({"what": chosen.value, "picture": str(output)}, as_json)


class Scene(StrEnum):
    """Scenes of a film without bags."""

    photo = "photo"
    trees = "trees"


def movie(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the film: .gif, .mp4 or .webm.")],
    bags: Annotated[
        Path | None,
        typer.Argument(help="A collection that `bag` wrote; a scene by default.", exists=True, dir_okay=False),
    ] = None,
    scene: Annotated[
        Scene, typer.Option(help="Without bags: the photo of the demo, or the trees of the paper.")
    ] = Scene.photo,
    data: Annotated[
        Path | None, typer.Option(envvar="COUNTINGGRIDS_DATA", help="Folder of the data sets, for the trees.")
    ] = None,
    grid: Annotated[
        str | None, typer.Option(help="Cells along each axis; by default chosen by the number of bags.")
    ] = None,
    window: Annotated[str | None, typer.Option(help="Cells along each axis of the window.")] = None,
    sections: Annotated[
        str | None, typer.Option(help="Sections, such as 2x2; by default those of the collection.")
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Iterations between frames; by default more where the grid changes more."),
    ] = None,
    n_windows: Annotated[
        int, typer.Option("--windows", min=0, max=6, help="Number of bags whose windows are outlined.")
    ] = 6,
    fps: Annotated[float, typer.Option(min=1, max=60, help="Frames per second.")] = 12.0,
    seconds: Annotated[
        float, typer.Option(min=1, help="Largest length of the film without --every, in seconds.")
    ] = 12.0,
    size: Annotated[int, typer.Option(min=64, max=2160, help="Pixels along the longer side of the grid.")] = 480,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Film the training of a grid: how the scene, or the map of words, forms."""
    with common.errors():
        common.check_output(output, force)
        common.check_apart([("BAGS", bags)], [("--output", output)])
        from countinggrids.plot import encode
        from countinggrids.reproduce import demo

        encode.check(output)
        if bags is None and (grid or window or sections):
            raise ValueError("--grid, --window and --sections need a collection; pass one as BAGS.")
        with progress.fit_bar() as callback:
            if bags is None:
                film, beside = demo.film(_scene(scene, data), seed, every, callback)
            else:
                shapes = {"grid": grid, "window": window, "sections": sections}
                film, beside = _filmed(bags, shapes, n_windows, seed, every, callback)
        with progress.spinner("drawing and writing"):
            n_frames = film.write(output, fps, size, seconds, beside)
    facts = {"iterations": film.n_seen, "frames": n_frames, "bytes": output.stat().st_size, "film": str(output)}
    common.print_facts(facts, as_json)


def _scene(scene: Scene, data: Path | None) -> Any:
    from countinggrids.reproduce import demo

    if scene == Scene.photo:
        return demo.photo_scene()
    if data is None:
        raise ValueError("--scene=trees needs the data sets; use --data for their folder.")
    return demo.tree_scene(data)


def _filmed(
    path: Path, texts: dict[str, str | None], n_windows: int, seed: int, every: int | None, callback: Any
) -> tuple[Any, Any]:
    """Fit a grid with a film as callback; return the film, and thumbnails to show beside it."""
    import numpy as np

    from countinggrids.plot import Film, watchable
    from countinggrids.training.callbacks import combined

    collection = countinggrids.Collection.load(path)
    shapes = {name: common.shape(text, name) for name, text in texts.items() if text is not None}
    shapes = models.complete_shapes(collection, shapes)
    X = collection.coarsen(shapes.get("sections") or collection.sections).counts
    model = watchable(countinggrids.CountingGrid(**shapes, random_state=seed), X)  # type: ignore[arg-type]
    some = np.unique(np.linspace(0, X.shape[0] - 1, n_windows).astype(int))
    film = Film(model, collection, X[some] if len(some) else None, every=every)

    model.fit(X, callback=combined(film, callback))
    return film, _thumbnails(collection, some)


def _thumbnails(collection: "Collection", which: Any) -> Any:
    """Return thumbnails of the outlined items, or None if their files are gone or are no images."""
    from countinggrids.plot.stage import framed

    try:
        return framed([collection.thumbnail(int(i), 160) for i in which])
    except (ValueError, OSError):
        return None


def _bags(path: Path, model: "GridModel") -> tuple[Any, Any]:
    """Read bags for a fitted model, and their vocabulary if the file has one."""
    X = models.read(path)
    if not isinstance(X, countinggrids.Collection):
        return X, None
    return X.for_model(model).counts, X.vocabulary


def _check(what: What, X: Any, vocabulary: Any, bag: int, n_windows: int) -> None:
    if what in (What.grid, What.words) and vocabulary is None:
        raise ValueError(f"--what={what} needs a collection; pass one after the model.")
    if (what in (What.usage, What.posterior) or n_windows) and X is None:
        option = f"--what={what}" if what in (What.usage, What.posterior) else "--windows"
        raise ValueError(f"{option} needs bags; pass a collection or counts after the model.")
    if what == What.posterior and bag >= X.shape[0]:
        raise ValueError(f"--bag={bag} must be from 0 to {X.shape[0] - 1}; use another number.")


def _drawn(what: What, model: "GridModel", X: Any, vocabulary: Any, bag: int, view: dict[str, Any]) -> Any:
    from countinggrids import plot

    if what in (What.grid, What.words):
        return getattr(plot, what)(model, vocabulary, **view)
    if what == What.usage:
        return plot.usage(model, X, **view)
    if what == What.history:
        return plot.history(model)
    if what == What.prior:
        return plot.prior(model, **view)
    picture = None
    if vocabulary is not None and vocabulary.kind != "words" and vocabulary.colors is not None:
        picture = plot.grid(model, vocabulary, **view)
    return plot.posterior(model, X[[bag]], picture, **view)
