"""What the commands share: options, errors, progress, printing."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from countinggrids.learn import Callback

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]
Seed = Annotated[int, typer.Option(help="Seed; the same seed gives the same result.")]


@contextmanager
def errors() -> Iterator[None]:
    """Say what is wrong in one line, without a traceback."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def check_output(output: Path, force: bool) -> None:
    """Raise, before any work, about an output that cannot or should not be written."""
    if output.exists() and not output.is_file():
        raise ValueError(f"{output} is no plain file; wanted a file to write; give another --output")
    if output.exists() and not force:
        raise ValueError(f"{output} exists; wanted a new file; give another --output, or --force to replace it")
    if not output.parent.is_dir():
        raise ValueError(f"{output.parent} is no folder; wanted one to write into; make it first")
    if not os.access(output.parent, os.W_OK):
        raise ValueError(f"{output.parent} cannot be written into; wanted a folder that can; give another --output")


def check_picture(picture: Path, name: str, force: bool) -> None:
    """Raise, before any work, about a picture that cannot be drawn."""
    check_output(picture, force)
    if picture.suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--{name} is {picture}; wanted a name that ends in .png, .pdf or .svg")


def save_picture(path: Path, ax: Any) -> None:
    """Write the figure of some Axes, whole or not at all."""
    from countinggrids import files

    files.write_whole(path, lambda name: ax.figure.savefig(name, format=path.suffix[1:]))


def shape(text: str, name: str) -> tuple[int, ...]:
    """Read a shape such as 8x8."""
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise ValueError(f"--{name} is {text!r}; wanted integers joined by x; give for instance --{name} 8x8") from None


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print facts, one a line, or as one JSON object."""
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):20} {value}")


def one_line(name: str) -> str:
    """Escape what would break a line of output in two, or could not be printed."""
    escaped = name.translate({9: "\\t", 10: "\\n", 13: "\\r"})
    return escaped.encode("utf-8", "backslashreplace").decode("utf-8")


def say(text: str) -> None:
    """Write a line to stderr, where it is in no program's way."""
    print(one_line(text), file=sys.stderr)


@contextmanager
def learning() -> "Iterator[Callback]":
    """Show a bar on stderr while a model learns."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with _bar(*columns) as progress:
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


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on stderr that something goes on, and for how long."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show on stderr how many items are done, and how much time is left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    left = (TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left"))
    with _bar(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *left) as progress:
        task = progress.add_task(what, total=None)

        def watch(done: int, total: int | None) -> None:
            # What follows the last item, such as clustering, takes its own time: the bar then only moves.
            progress.update(task, completed=done, total=None if done == total else total)

        yield watch


def _bar(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)
