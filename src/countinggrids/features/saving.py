"""The method `save` of estimators, and checks of what a file says about one."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


class Saveable:
    """Base class of estimators that can be saved; `countinggrids.load` reads them again.

    A class checks its fitted attributes in `_restored`, because a file can hold anything.
    """

    _local: ClassVar[frozenset[str]] = frozenset()
    """Parameters that a file does not hold, because they are code."""
    _rebuilt: ClassVar[frozenset[str]] = frozenset()
    """Fitted attributes that a file does not hold, because `_restored` computes them."""

    _kept: ClassVar[tuple[str, ...]] = ()
    """Parameters that predictions use as they were when the estimator was fitted, in `settings_`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to one file, which `countinggrids.load` reads.

        The file holds arrays and JSON with digests, and no code. An existing file is replaced whole or not at all.

        Parameters
        ----------
        path : path-like
            Where to write.
        """
        from countinggrids.data import estimator_file

        estimator_file.save(self, path)

    def _restored(self) -> Any:
        """Raise unless fitted attributes that were read from a file are possible."""


def check_array(owner: Any, name: str, kinds: str, shape: Sequence[int | None], is_finite: bool = True) -> NDArray[Any]:
    """Return an attribute that was read from a file, or raise unless it is such an array.

    Parameters
    ----------
    owner : object
        Has the attribute.
    name : str
        Name of the attribute.
    kinds : str
        Kinds of its dtype, such as "f" or "iu".
    shape : sequence of int or None
        Lengths of its axes; None for any length of at least 1.
    is_finite : bool, default=True
        Whether floats must be finite.

    Returns
    -------
    array : ndarray
        The array.
    """
    array = getattr(owner, name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.ndim != len(shape):
        raise ValueError(f"{name} is {str(array)[:40]!r}")
    if any(n < 1 if wanted is None else n != wanted for n, wanted in zip(array.shape, shape, strict=True)):
        raise ValueError(f"{name} has shape {array.shape}")
    if is_finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    return array


def check_labels(owner: Any, least: int = 1) -> int:
    """Return the number of labels in `classes_`, or raise unless they are at least so many."""
    n = len(check_array(owner, "classes_", "biufUO", (None,)))
    if n < least:
        raise ValueError(f"classes_ holds {n} labels")
    return n


def check_count(owner: Any, name: str, least: int = 1, most: int = 2**31) -> int:
    """Return an attribute that was read from a file, or raise unless it is an integer within limits."""
    value = getattr(owner, name)
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r:.40}")
    return int(value)


def check_texts(owner: Any, *names: str) -> None:
    """Raise unless attributes that were read from a file are lists of strings."""
    for name in names:
        values = getattr(owner, name)
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise ValueError(f"{name} is {values!r:.40}")
