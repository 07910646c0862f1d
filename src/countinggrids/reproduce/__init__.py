"""The paper's tables and figures, made again: one file each, our figures beside the paper's."""

import time
from importlib import import_module

from countinggrids.reproduce.report import Report, page
from countinggrids.reproduce.workshop import Workshop

NAMES = ("station", "trees", "figure2", "scenes15", "indoor67", "places", "sequences", "clustering", "panning")

__all__ = ["NAMES", "Report", "Workshop", "page", "reproduce"]


def reproduce(name: str, shop: Workshop) -> Report:
    """Run one experiment and write its report, its table and its picture into the workshop's folder.

    Parameters
    ----------
    name : one of `NAMES`
    shop : where to work
    """
    if name not in NAMES:
        raise ValueError(f"there is no experiment {name!r}; wanted one of {', '.join(NAMES)}, or all")
    shop.begin()
    began = time.perf_counter()
    report: Report = import_module(f"countinggrids.reproduce.{name}").run(shop)
    report.commits, report.is_quick = sorted(shop.commits) or [shop.commit], shop.is_quick
    report.n_splits = shop.n_splits
    report.seconds = shop.seconds or time.perf_counter() - began
    report.save(shop.folder)
    return report
