"""Shared by the commands: options, errors, checks of paths, printing."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {9: "\\t", 10: "\\n", 13: "\\r"}
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]
Seed = Annotated[int, typer.Option(help="Seed; the same seed gives the same result.")]


@contextmanager
def errors() -> Iterator[None]:
    """Log an error in one line, without a traceback, and exit with 2."""
    try:
        yield
    except (ValueError, OSError, ImportError, MemoryError) as error:
        log(f"Error: {str(error) or 'not enough memory.'}")
        raise typer.Exit(2) from None


@contextmanager
def interruptible(advice: Callable[[], str]) -> Iterator[None]:
    """Log on Ctrl-C how to resume, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        log(f"Interrupted: {advice()}")
        raise typer.Exit(130) from None


def load_grid(path: Path) -> Any:
    """Read a model; raise about another estimator."""
    import countinggrids

    model = countinggrids.load(path)
    if not hasattr(model, "pi_"):
        raise ValueError(f"{path} holds a {type(model).__name__} and must hold a grid; use a model that `fit` wrote.")
    return model


def check_output(output: Path, force: bool) -> None:
    """Raise, before any work, about an output that cannot or should not be written."""
    if output.exists() and not output.is_file():
        raise ValueError(f"--output={output} must be a plain file; use another name.")
    if output.exists() and not force:
        raise ValueError(f"--output={output} exists; use another name, or --force to replace it.")
    folder = Path(os.path.realpath(output)).parent
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a folder; make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} is not writable; use another --output.")


def check_apart(inputs: Iterable[tuple[str, Path | None]], outputs: Iterable[tuple[str, Path | None]]) -> None:
    """Raise, before any work, if an output would replace an input or another output.

    Parameters
    ----------
    inputs, outputs : iterable of (str, Path or None)
        Name on the command line and path of each file or folder; None if it was not given.
    """
    from countinggrids.data import paths

    earlier = [(name, path) for name, path in inputs if path is not None]
    for name, path in outputs:
        if path is None:
            continue
        for other_name, other in earlier:
            if paths.is_same(path, other):
                raise ValueError(f"{name} {path} and {other_name} {other} are the same file; use another {name}.")
        earlier.append((name, path))


def check_spares(folder: Path, output: Path) -> None:
    """Raise, before any work, if an output would replace a file of an input folder that is not one of ours."""
    from countinggrids.data import container

    target = Path(os.path.realpath(output))
    if not target.is_file() or Path(os.path.realpath(folder)) not in target.parents:
        return
    try:
        container.read_facts(target)
    except ValueError:
        raise ValueError(
            f"--output={output} must not be a file in {folder}, which is read; use another name."
        ) from None


def check_picture(picture: Path, name: str, force: bool) -> None:
    """Raise, before any work, about a picture that cannot be drawn."""
    check_output(picture, force)
    if picture.suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--{name}={picture} must end in .png, .pdf or .svg; use another name.")


def save_picture(path: Path, ax: Any) -> None:
    """Write the figure of some Axes, whole or not at all."""
    from countinggrids.data import container

    container.write_figure(path, ax.figure)


def shape(text: str, name: str) -> tuple[int, ...]:
    """Read a shape such as 8x8."""
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise ValueError(f"--{name}={text} must be integers joined by x; use for instance --{name}=8x8.") from None


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print names and values, one to a line, or as one JSON object."""
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):20} {one_line(str(value))}")


def one_line(name: str) -> str:
    """Escape control characters, which break lines or act on a terminal, and characters that cannot be printed."""
    escaped = name.translate(CONTROLS)
    return escaped.encode("utf-8", "backslashreplace").decode("utf-8")


def log(text: str) -> None:
    """Write a line to stderr."""
    print(one_line(text), file=sys.stderr)
