"""Progress on stderr: bars and spinners, each with the callback that moves it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countinggrids.training.callbacks import Callback


@contextmanager
def fit_bar() -> "Iterator[Callback]":
    """Show the stage and the objective of fits that are not planned; yield the callback for `fit`."""
    from countinggrids.training.progress import bar

    with bar() as callback:
        yield callback


@contextmanager
def verbose(model: Any, is_quiet: bool = False) -> Iterator[None]:
    """Let a model show its estimate and its progress inside the `with` block, as `verbose=1` does."""
    before = model.verbose
    model.verbose = 0 if is_quiet else 1
    try:
        yield
    finally:
        model.verbose = before


@contextmanager
def count_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show how many items are done, and the time that is left; yield a callback that takes both numbers."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    times = (TimeElapsedColumn(), TextColumn("elapsed,"), TimeRemainingColumn(), TextColumn("remaining"))
    with _progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times) as progress:
        task = progress.add_task(what, total=None)

        def callback(done: int, total: int | None) -> None:
            # The step after the last item, such as clustering, takes time of its own: the bar then only moves.
            progress.update(task, completed=done, total=None if done == total else total)

        yield callback


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show that a step is running, and its time."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        progress.add_task(what, total=None)
        yield


def _progress(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)
