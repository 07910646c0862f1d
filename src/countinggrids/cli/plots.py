"""`countinggrids plot`: pictures of a model."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import common, models

if TYPE_CHECKING:
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


def _bags(path: Path, model: "GridModel") -> tuple[Any, Any]:
    """Read bags to look at with a model, and what their features are, if the file says so."""
    X, _ = models.bags_of(path, model)
    read = models.read(path)
    return X, getattr(read, "vocabulary", None)


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
