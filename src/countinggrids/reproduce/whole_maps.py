"""The hybrid of the paper: its window is the whole feature map, so the capacity alone determines the grid."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from countinggrids.core.geometry import Shape
from countinggrids.features.bagger import bag
from countinggrids.meta import BagScaler, GridClassifier
from countinggrids.models import HybridEpitome

SIDE = 31
"""Sections along each axis: as many as an image of 256x256 pixels has patches."""
CAPACITIES = (1.5, 2.5, 4.0, 6.0, 8.0)
"""Capacities of the paper."""
TOL = 1e-4
"""Gain of the objective per token below which EM stops, larger than the default for grids this large."""


def stretched(labels: NDArray[Any], shape: Shape) -> NDArray[Any]:
    """Return a map of another shape, each position with the label of the nearest one when the map is stretched over it.

    Every section of a window has one label then, whatever the shape of the image; binned maps with fewer rows or
    columns than sections leave stripes of sections empty.
    """
    rows, columns = ((np.arange(n) * 2 + 1) * old // (2 * n) for n, old in zip(shape, labels.shape, strict=True))
    return np.asarray(labels[np.ix_(rows, columns)])


def bags_of_maps(maps: Iterable[Any], n_features: int, side: int = SIDE) -> sp.csr_array:
    """Return bags of feature maps that are stretched over a window, one section for each of its cells."""
    window = (side, side)
    return bag((stretched(np.asarray(each), window) for each in maps), window, n_features)


def cells_along(capacity: float, side: int) -> int:
    """Return the cells along each axis of a grid of some capacity."""
    return round(side * float(np.sqrt(capacity)))


def classifier(
    capacity: float, side: int, tokens: float, anneal: tuple[float, float, float], init: str = "uniform"
) -> Any:
    """Return a hybrid for each class, matched by whole bags and painted cell by cell."""
    n = cells_along(capacity, side)
    model = HybridEpitome((n, n), (side, side), anneal=anneal, init=init, tol=TOL)
    return make_pipeline(BagScaler(tokens), GridClassifier(model, random_state=0))


def select_capacity(
    X: Any,
    y: Any,
    folds: Any,
    side: int,
    tokens: float,
    anneal: tuple[float, float, float],
    capacities: Sequence[float],
) -> float:
    """Select the capacity by cross-validation; of equally accurate ones the smaller."""
    if len(capacities) == 1:
        return capacities[0]
    accuracy = [cross_val_score(classifier(c, side, tokens, anneal), X, y, cv=folds).mean() for c in capacities]
    return capacities[int(np.argmax(accuracy))]
