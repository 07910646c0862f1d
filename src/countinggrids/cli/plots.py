"""`countinggrids plot` and `movie`: pictures of a model, and a film of its learning."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common, models

if TYPE_CHECKING:
    from countinggrids.collection import Collection
    from countinggrids.model import GridModel


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
        typer.Option(help="What to draw; the painted grid or its words if left out, without bags the prior."),
    ] = None,
    bag: Annotated[int, typer.Option(min=0, help="Which bag's posterior, from 0.")] = 0,
    n_windows: Annotated[int, typer.Option("--windows", min=0, help="Outline the windows of the first bags.")] = 0,
    roll: Annotated[bool, typer.Option("--roll", help="Put the least used seam at the border.")] = False,
    tiles: Annotated[str, typer.Option(help="Repeat the torus, such as 2x2, to show that it wraps round.")] = "1x1",
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Draw a model: its grid painted with features or words, usage, prior, the posterior of a bag, or history."""
    with common.errors():
        common.check_picture(output, "output", force)
        view: dict[str, Any] = {"roll": roll, "tiles": common.shape(tiles, "tiles")}
        model = countinggrids.load(model_file)
        X, vocabulary = (None, None) if bags is None else _bags(bags, model)
        kind = getattr(vocabulary, "kind", None)
        chosen = what or (What.prior if kind is None else What.words if kind == "words" else What.grid)
        _check(chosen, X, vocabulary, bag, n_windows)
        with common.working("drawing"):
            ax = _drawn(chosen, model, X, vocabulary, bag, view)
            if X is not None and n_windows and chosen != What.history:
                from countinggrids.plot import windows

                windows(model, model.locate(X[:n_windows]), ax, **view)
            common.save_picture(output, ax)
    common.print_facts({"what": chosen.value, "picture": str(output)}, as_json)


class Scene(StrEnum):
    """What the film shows if there are no bags."""

    photo = "photo"
    trees = "trees"


def movie(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the film: .gif, .mp4 or .webm.")],
    bags: Annotated[
        Path | None,
        typer.Argument(help="A collection that `bag` wrote; a scene if left out.", exists=True, dir_okay=False),
    ] = None,
    scene: Annotated[Scene, typer.Option(help="Without bags: the demo's photo, or the paper's trees.")] = Scene.photo,
    data: Annotated[
        Path | None, typer.Option(envvar="COUNTINGGRIDS_DATA", help="Folder of the data sets, for the trees.")
    ] = None,
    grid: Annotated[str | None, typer.Option(help="Cells along each axis; chosen if left out.")] = None,
    window: Annotated[str | None, typer.Option(help="Cells along each axis of the window.")] = None,
    sections: Annotated[str | None, typer.Option(help="Sections, such as 2x2; the collection's if left out.")] = None,
    every: Annotated[
        int | None, typer.Option(min=1, help="A picture every so many iterations; if left out, where much happens.")
    ] = None,
    n_windows: Annotated[int, typer.Option("--windows", min=0, max=6, help="Bags of a collection to outline.")] = 6,
    fps: Annotated[float, typer.Option(min=1, max=60, help="Pictures a second.")] = 12.0,
    seconds: Annotated[float, typer.Option(min=1, help="Length of the film without --every, at the most.")] = 12.0,
    size: Annotated[int, typer.Option(min=64, max=2160, help="Pixels along the longer side of the grid.")] = 480,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Learn a grid and film it: the scene, or the map of words, is seen assembling itself."""
    with common.errors():
        common.check_output(output, force)
        from countinggrids import demo
        from countinggrids.plot import encode

        encode.check(output)
        if bags is None and (grid or window or sections):
            raise ValueError("--grid, --window and --sections are those of a collection; wanted one; give it first")
        with common.learning() as callback:
            if bags is None:
                film, beside = demo.film(_scene(scene, data), seed, every, callback)
            else:
                shapes = {"grid": grid, "window": window, "sections": sections}
                film, beside = _filmed(bags, shapes, n_windows, seed, every, callback)
        with common.working("drawing and writing"):
            n_pictures = film.write(output, fps, size, seconds, beside)
    facts = {"iterations": film.n_seen, "pictures": n_pictures, "bytes": output.stat().st_size, "film": str(output)}
    common.print_facts(facts, as_json)


def _scene(scene: Scene, data: Path | None) -> Any:
    from countinggrids import demo

    if scene == Scene.photo:
        return demo.photo_scene()
    if data is None:
        raise ValueError("--scene trees needs the drawing; wanted the folder of the data sets; give --data")
    return demo.tree_scene(data)


def _filmed(
    path: Path, texts: dict[str, str | None], n_windows: int, seed: int, every: int | None, callback: Any
) -> tuple[Any, Any]:
    """Learn a collection with a film as callback; give it, and thumbnails to show beside it."""
    import numpy as np

    from countinggrids.plot import Film, watchable

    collection = countinggrids.Collection.load(path)
    shapes = {name: common.shape(text, name) for name, text in texts.items() if text is not None}
    X, shapes = models.bags_for(collection, shapes)
    model = watchable(countinggrids.CountingGrid(**shapes, random_state=seed), X)  # type: ignore[arg-type]
    some = np.unique(np.linspace(0, X.shape[0] - 1, n_windows).astype(int))
    film = Film(model, collection, X[some] if len(some) else None, every=every)

    def watch(now: Any) -> None:
        film(now)
        callback(now)

    model.fit(X, callback=watch)
    return film, _thumbnails(collection, some)


def _thumbnails(collection: "Collection", which: Any) -> Any:
    """Show the outlined items, if their files are still there and are images."""
    from countinggrids.plot.stage import framed

    try:
        return framed([collection.thumbnail(int(i), 160) for i in which])
    except (ValueError, OSError):
        return None


def _bags(path: Path, model: "GridModel") -> tuple[Any, Any]:
    """Read bags to look at with a model, and what their features are, if the file says so."""
    X = models.read(path)
    if not isinstance(X, countinggrids.Collection):
        return X, None
    return X.for_model(model).counts, X.vocabulary


def _check(what: What, X: Any, vocabulary: Any, bag: int, n_windows: int) -> None:
    if what in (What.grid, What.words) and vocabulary is None:
        raise ValueError(f"--what {what} needs to know the features; wanted a collection; give it after the model")
    if (what in (What.usage, What.posterior) or n_windows) and X is None:
        asked = f"--what {what}" if what in (What.usage, What.posterior) else "--windows"
        raise ValueError(f"{asked} needs bags; wanted a collection or counts; give them after the model")
    if what == What.posterior and bag >= X.shape[0]:
        raise ValueError(f"--bag is {bag}; wanted one of the {X.shape[0]} bags, from 0 to {X.shape[0] - 1}")


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
    if vocabulary is not None and vocabulary.kind != "words" and vocabulary.colours is not None:
        picture = plot.grid(model, vocabulary, **view)
    return plot.posterior(model, X[[bag]], picture, **view)
