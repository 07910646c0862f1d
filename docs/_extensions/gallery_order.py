"""The order of the gallery: from what most readers look for to what few do."""

from pathlib import Path

ORDER = ("scene", "words", "plain_histograms", "annealing", "family", "componential", "compare", "growing", "classify")
ORDER += ("score_space", "elastic", "walk", "own_descriptors", "axes", "out_of_core", "sample")
"""Examples by the name of their file, without `plot_`."""


def reading_order(filename: str) -> int:
    """Return the position of an example, which must be listed."""
    name = Path(filename).stem.removeprefix("plot_")
    if name not in ORDER:
        raise ValueError(f"{filename} must be listed in docs/_extensions/gallery_order.py; add {name!r} to ORDER.")
    return ORDER.index(name)
