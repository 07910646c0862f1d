"""Files of estimators: one safetensors file each, with JSON metadata and digests. Nothing is unpickled."""

import os
from typing import Any

from sklearn.base import BaseEstimator

from countinggrids.data import container, estimator_state

FORMAT, VERSION = "estimator", 1


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to one file; an existing file is replaced whole or not at all.

    Parameters
    ----------
    estimator : estimator
        An estimator of this package, or a Pipeline of such ones.
    path : path-like
        Where to write.

    Examples
    --------
    >>> import countinggrids as cg
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(cg.BagScaler(100), cg.CountingGrid((8, 8), (2, 2)))
    >>> cg.save(model, "model.cg")  # doctest: +SKIP
    """
    if not isinstance(estimator, BaseEstimator):
        raise ValueError(f"estimator is a {type(estimator).__name__} and must be an estimator; pass a fitted one.")
    nodes, arrays = estimator_state.to_state([estimator])
    facts = {"format": FORMAT, "version": VERSION, "class": type(estimator).__name__, "nodes": nodes}
    container.write(path, facts, arrays)


def read(path: str | os.PathLike[str]) -> Any:
    """Read an estimator.

    Parameters
    ----------
    path : path-like
        A file that `save` wrote.

    Returns
    -------
    estimator : estimator
        The estimator.

    Raises
    ------
    ValueError
        If the file is damaged, of another format or version, or inconsistent.
    """
    facts, arrays = container.read(path, FORMAT, VERSION)
    with container.fitting_together(path):
        [estimator] = estimator_state.from_state(facts["nodes"], arrays)
        return estimator
