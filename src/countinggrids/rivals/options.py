"""Checks that the rivals share: what was given, what is wanted, what to do."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_non_negative, validate_data

from countinggrids.geometry import Shape, as_shape
from countinggrids.recipe import smoothed

Array = NDArray[np.float64]
NO_Y = "no_validation"  # as scikit-learn calls it
AUTO_SHARE = 0.2  # of the tokens that a distribution receives: its pseudocounts under eta="auto"


def checked_counts(model: Any, X: Any, is_fitting: bool, y: Any = NO_Y) -> Any:
    """Give X as counts of at least 0, dense or CSR, or raise; with y, give both."""
    checked = validate_data(model, X, y, accept_sparse="csr", dtype=np.float64, reset=is_fitting)
    check_non_negative(checked if y is NO_Y else checked[0], type(model).__name__)
    return checked


def check_whole(model: Any, *names: str) -> None:
    """Raise unless these options are integers of at least 1."""
    for name in names:
        value = getattr(model, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} is {value!r}; wanted an integer of at least 1; give for instance {name}=10")


def check_above(model: Any, *names: str) -> None:
    """Raise unless these options are finite numbers above 0."""
    for name in names:
        value = getattr(model, name)
        if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
            raise ValueError(f"{name} is {value!r}; wanted a number above 0; give for instance {name}=0.1")


def check_eta(eta: Any) -> None:
    """Raise unless eta is "auto" or a finite number of at least 0."""
    is_number = isinstance(eta, int | float | np.number) and not isinstance(eta, bool)
    if eta != "auto" if not is_number else not 0 <= eta < np.inf:
        raise ValueError(f"eta is {eta!r}; wanted 'auto' or a number of at least 0; give for instance eta=0.1")


def pseudocounts(eta: float | str, totals: Array, n: int) -> Array:
    """Give the pseudocounts of each feature, (features,), in each of n distributions that share the totals.

    "auto" takes them along the histogram of all bags, in which a feature that was never seen stays possible.
    """
    if not isinstance(eta, str):
        return np.full(len(totals), float(eta))
    return AUTO_SHARE * smoothed(totals) * totals.sum() / n


def warming(anneal: Any) -> list[float]:
    """Give the rising powers of the likelihood before it counts in full, from (start, rate, end); None has none."""
    if anneal is None:
        return []
    wanted = "wanted None or (start, rate, end) with 0 < start <= end <= 1 and rate > 1"
    try:
        start, rate, end = (float(value) for value in anneal)
    except (TypeError, ValueError):
        start, rate, end = 0.0, 0.0, 0.0
    if not (0 < start <= end <= 1 < rate < np.inf):
        raise ValueError(f"anneal is {anneal!r}; {wanted}; give for instance anneal=(0.01, 1.1, 1.0)")
    n = int(np.ceil(np.log(end / start) / np.log(rate)))
    return [start * rate**i for i in range(n)]


def features_of(n_columns: int, sections: object) -> tuple[Shape, int]:
    """Read sections, and tell from the number of columns how many features each has."""
    parts = as_shape(sections, "sections")
    if n_columns % prod(parts):
        raise ValueError(
            f"X has {n_columns} columns; wanted a multiple of the {prod(parts)} sections {parts}; "
            "build X with the same sections, for instance with countinggrids.bag"
        )
    return parts, n_columns // prod(parts)
