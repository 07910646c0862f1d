"""Progress of a fit on stderr: a bar on a terminal and in notebooks, lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from countinggrids.training.callbacks import Callback, Iteration, VerboseLogger
from countinggrids.training.plans import Plan, ProgressTracker, spelled


@contextmanager
def shown(verbose: int, plan: Callable[[], Plan]) -> Iterator[Callback | None]:
    """Show the estimate of a fit and then its progress; yield the callback that moves it.

    Parameters
    ----------
    verbose : int
        0 shows nothing; 1 a bar on a terminal and in notebooks, and elsewhere a line every two seconds; 2 a line after
        every iteration.
    plan : callable
        Returns what the fit is expected to take. It is called only if something is shown.

    Yields
    ------
    callback : callable or None
        To be called after every iteration; None if nothing is shown.
    """
    if not verbose:
        yield None
        return
    expected = plan()
    print(expected, file=sys.stderr)
    if verbose > 1 or not is_live():
        yield VerboseLogger(verbose)
        return
    with bar(expected) as callback:
        yield callback


def is_live() -> bool:
    """Return whether stderr is a terminal, or this is a notebook."""
    return _console().is_terminal or _console().is_jupyter


@contextmanager
def bar(plan: Plan | None = None) -> Iterator[Callback]:
    """Show a bar with the stage, the objective and the time left; yield the callback that moves it.

    Parameters
    ----------
    plan : Plan, default=None
        What the fit is expected to take; None shows the inverse temperature instead of the fraction done, and the time
        that has passed.

    Yields
    ------
    callback : callable
        To be called after every iteration.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    tracker = None if plan is None else ProgressTracker(plan)
    # Data that others print to stdout while the bar is shown must not end up on stderr.
    with Progress(*columns, console=_console(), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("starting", total=1.0, state="")

        def callback(now: Iteration) -> None:
            state = f"iteration {now.number}, objective {now.objective:.4f}"
            fraction = min(now.beta, 1.0)
            if tracker is not None:
                fraction, left = tracker.update(now)
                state += f", {spelled(left)} left"
            progress.update(task, description=now.stage, completed=fraction, state=state)

        yield callback


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
