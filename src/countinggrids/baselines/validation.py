"""Validation that the baselines share, and pseudocounts."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.geometry import Shape, as_shape
from countinggrids.core.schedule import smoothed
from countinggrids.data.counts import tokens_of
from countinggrids.data.validation import LARGEST_TOTAL, check_table, check_total, check_weights
from countinggrids.meta.options import is_number

Array = NDArray[np.float64]
AUTO_FRACTION = 0.2
"""Pseudocounts under eta="auto", as a fraction of the tokens that a distribution receives."""


def checked_images(model: Any, X: Any, is_fitting: bool) -> Array:
    """Return X as numbers whose squares can be summed, (images, columns), or raise."""
    options = {"dtype": np.float64, "accept_sparse": False, "ensure_min_samples": 2 if is_fitting else 1}
    images: Array = check_table(model, X, is_fitting, **options)
    largest = max(images.max(), -images.min())
    if largest > LARGEST_TOTAL:
        raise ValueError(f"X has values up to {largest:g} but must not exceed {LARGEST_TOTAL:g}; divide by a constant.")
    return images


def checked_weights(sample_weight: Any, X: Any) -> Array:
    """Return one weight for each bag, or raise; the bags may be empty."""
    weights: Array = check_weights(sample_weight, X.shape[0])
    check_total(weights, tokens_of(X), smallest=0.0)
    return weights


def check_eta(eta: Any) -> None:
    """Raise unless eta is "auto" or a number of at least 0 that can be summed."""
    if eta != "auto" if not is_number(eta) else not 0 <= eta <= LARGEST_TOTAL:
        raise ValueError(
            f"eta={eta!r} must be 'auto' or a number of at least 0, at most {LARGEST_TOTAL:g}; use eta='auto'."
        )


def pseudocounts(eta: float | str, totals: Array, n: int, fraction: float = AUTO_FRACTION) -> Array:
    """Return the pseudocounts of each feature in each of several distributions.

    Parameters
    ----------
    eta : {"auto"} or float
        The parameter; "auto" is proportional to the smoothed histogram of all bags.
    totals : ndarray of shape (n_features,)
        Counts of each feature in all bags.
    n : int
        Number of distributions.
    fraction : float
        Total of "auto", as a fraction of the tokens that a distribution receives.

    Returns
    -------
    pseudocounts : ndarray of shape (n_features,)
        The same for each distribution.
    """
    if not isinstance(eta, str):
        return np.full(len(totals), float(eta))
    return fraction * smoothed(totals) * totals.sum() / n


def inverse_temperatures(anneal: Any) -> list[float]:
    """Return the inverse temperatures of the annealing schedule (start, rate, end) below its end; None has none."""
    if anneal is None:
        return []
    try:
        start, rate, end = (float(value) for value in anneal)
    except (TypeError, ValueError):
        start, rate, end = 0.0, 0.0, 0.0
    if not (0 < start <= end <= 1 < rate < np.inf):
        raise ValueError(
            f"anneal={anneal!r} must be None or (start, rate, end) with 0 < start <= end <= 1 and rate > 1; "
            "use anneal=(0.01, 1.1, 1.0)."
        )
    n = int(np.ceil(np.log(end / start) / np.log(rate)))
    return [start * rate**i for i in range(n)]


def features_of(n_columns: int, sections: object) -> tuple[Shape, int]:
    """Return sections as a tuple, and the number of features of each section."""
    parts = as_shape(sections, "sections")
    if n_columns % prod(parts):
        raise ValueError(
            f"X has {n_columns} columns, but sections={parts} needs a multiple of {prod(parts)}; "
            "use the sections that X was made with, for instance by countinggrids.bag."
        )
    return parts, n_columns // prod(parts)
