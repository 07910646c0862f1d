"""Reproduction of the tables and figures of the paper: one module for each experiment, tables and JSON out."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.report import Report, write_pages

NAMES = ("station", "trees", "figure2", "scenes15", "indoor67", "places", "sequences", "clustering", "panning")

__all__ = ["NAMES", "Experiment", "Report", "reproduce", "write_pages"]


def reproduce(
    name: str,
    folder: Path,
    *,
    data: Path | None = None,
    is_quick: bool = False,
    n_splits: int = 5,
    is_fresh: bool = False,
    log: Callable[[str], Any] = print,
    progress: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Report:
    """Run one experiment, and write its report, tables and figure.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    folder : Path
        Folder of reports, figures and cached steps.
    data : Path, default=None
        Folder of the data sets.
    is_quick : bool, default=False
        Whether to run a small version, which only shows that everything works.
    n_splits : int, default=5
        Number of random splits, or seeds, of the full version.
    is_fresh : bool, default=False
        Whether to compute cached steps again.
    log : callable, default=print
        Called with a line of text before each step that is computed.
    progress : callable, default=nullcontext
        Returns a context manager for a line of text, which is entered while a step is computed.

    Returns
    -------
    report : Report
        The report, as it was written.
    """
    if name not in NAMES:
        raise ValueError(f"name={name!r} must be an experiment; use one of {', '.join(NAMES)}, or all.")
    experiment = Experiment(name, folder, data, is_quick, n_splits, is_fresh, log, progress)
    began = time.perf_counter()
    report: Report = import_module(f"countinggrids.reproduce.{name}").run(experiment)
    report.commits, report.is_quick = sorted(experiment.commits) or [experiment.commit], is_quick
    report.n_splits = n_splits
    report.seconds = experiment.seconds or time.perf_counter() - began
    report.save(folder)
    return report
