"""Plots of models and results on matplotlib Axes, and films of training."""

from countinggrids.plot.film import Film, watchable
from countinggrids.plot.maps import grid, history, posterior, prior, usage, windows
from countinggrids.plot.results import capacity, confusion, regions, ribbon
from countinggrids.plot.wordmap import words

__all__ = [
    "Film",
    "capacity",
    "confusion",
    "grid",
    "history",
    "posterior",
    "prior",
    "regions",
    "ribbon",
    "usage",
    "watchable",
    "windows",
    "words",
]
