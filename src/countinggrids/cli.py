"""The command line: parse, call, print. Data goes to stdout, progress to stderr; wrong use exits with 2."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids

if TYPE_CHECKING:
    from countinggrids.learn import Callback
    from countinggrids.model import GridModel

app = typer.Typer(
    help="Counting grids: lay bags of features out on a torus, so that nearby windows explain similar bags.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]
ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` or `save` wrote.", exists=True, dir_okay=False)]
CountsFile = Annotated[
    Path,
    typer.Argument(
        help="Counts: a dense .npy array or a .npz that scipy.sparse.save_npz wrote.", exists=True, dir_okay=False
    ),
]


def _version(is_asked: bool) -> None:
    if is_asked:
        print(countinggrids.__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture and the model.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the windows and of the grid.")] = 0,
    as_json: Json = False,
) -> None:
    """Cut a photo into fifty windows, forget where they were, and let a grid put them back."""
    from countinggrids import demo as demonstration

    with _errors(), _progress() as callback:
        report = demonstration.run(folder, seed, callback)
    if as_json:
        print(json.dumps(report))
        return
    print(f"{report['put_back']} of {report['windows']} windows are back in place, after {report['seconds']} s")
    print(f"picture: {report['picture']}")
    print(f"model:   {report['model']}")


@app.command()
def fit(
    counts: CountsFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    grid: Annotated[str, typer.Option(help="Cells along each axis of the torus.")] = "32x32",
    window: Annotated[str, typer.Option(help="Cells along each axis of the window.")] = "8x8",
    sections: Annotated[str | None, typer.Option(help="Parts that windows and bags are cut into, such as 2x2.")] = None,
    paint: Annotated[str | None, typer.Option(help="Finer parts laid down in the M step.")] = None,
    max_iter: Annotated[int, typer.Option(help="Iterations at the most.")] = 500,
    n_init: Annotated[int, typer.Option(help="Restarts; the best is kept.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Seed; the same seed gives the same model.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
    as_json: Json = False,
) -> None:
    """Learn a counting grid from a table of counts."""
    with _errors():
        if output.exists() and not force:
            raise ValueError(f"{output} exists; wanted a new file; give another --output, or --force to replace it")
        if not output.parent.is_dir():
            raise ValueError(f"{output.parent} is no folder; wanted one to write the model into; make it first")
        shapes = {"grid": grid, "window": window, "sections": sections, "paint": paint}
        model = countinggrids.CountingGrid(
            **{name: _shape(text, name) for name, text in shapes.items() if text is not None},  # type: ignore[arg-type]
            max_iter=max_iter,
            n_init=n_init,
            random_state=seed,
        )
        X = _read_counts(counts)
        with _progress() as callback:
            model.fit(X, callback=callback)
        model.save(output)
    _print_facts(_facts(model) | {"model": str(output)}, as_json)


@app.command()
def info(model_file: ModelFile, as_json: Json = False) -> None:
    """Tell what a model is."""
    with _errors():
        _print_facts(_facts(countinggrids.load(model_file)), as_json)


@app.command()
def locate(model_file: ModelFile, counts: CountsFile, as_json: Json = False) -> None:
    """Print the most likely cell of every bag: one line of coordinates a bag."""
    with _errors():
        places = countinggrids.load(model_file).locate(_read_counts(counts)).tolist()
    print(json.dumps(places) if as_json else "\n".join(" ".join(map(str, place)) for place in places))


@app.command()
def score(model_file: ModelFile, counts: CountsFile, as_json: Json = False) -> None:
    """Print log p of every bag, one a line."""
    with _errors():
        values = countinggrids.load(model_file).score_samples(_read_counts(counts)).tolist()
    print(json.dumps(values) if as_json else "\n".join(f"{value:.6f}" for value in values))


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


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):20} {value}")


def _read_counts(path: Path) -> Any:
    import numpy as np
    import scipy.sparse as sp

    try:
        return sp.load_npz(path) if path.suffix == ".npz" else np.load(path)
    except (ValueError, OSError, EOFError, KeyError) as error:
        raise ValueError(
            f"{path} is no table of counts ({error}); wanted a .npy array or a .npz that scipy.sparse.save_npz wrote"
        ) from error


def _shape(text: str, name: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise ValueError(f"--{name} is {text!r}; wanted integers joined by x; give for instance --{name} 8x8") from None


@contextmanager
def _errors() -> Iterator[None]:
    """Say what is wrong in one line, without a traceback."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


@contextmanager
def _progress() -> "Iterator[Callback]":
    """Show a bar on stderr while a model learns."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("scouting", total=1.0, state="")

        def callback(now: Any) -> None:
            share = now.beta if now.beta < 1 else 1.0
            progress.update(
                task,
                description=now.stage,
                completed=share,
                state=f"iteration {now.number}, beta {now.beta:.2f}, objective {now.objective:.4f}",
            )

        yield callback
