"""Plots of models and results on matplotlib Axes, and films of training."""

from countinggrids.plot.film import Film, watchable
from countinggrids.plot.maps import grid, history, posterior, prior, usage, windows
from countinggrids.plot.path import path
from countinggrids.plot.recognition import precision_recall_curve, similarity_matrix
from countinggrids.plot.results import capacity, confusion, regions, ribbon
from countinggrids.plot.walk_film import WalkFilm
from countinggrids.plot.wordmap import words

__all__ = [
    "Film",
    "WalkFilm",
    "capacity",
    "confusion",
    "grid",
    "history",
    "path",
    "posterior",
    "precision_recall_curve",
    "prior",
    "regions",
    "ribbon",
    "similarity_matrix",
    "usage",
    "watchable",
    "windows",
    "words",
]
