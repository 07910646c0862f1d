"""Counting grids: bags of features laid out on a torus, so that nearby windows explain similar bags."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countinggrids.bags import bag
    from countinggrids.collection import Collection
    from countinggrids.rows import CountingGrid, DiscreteEpitome, HybridEpitome, MixtureOfUnigrams, SpatialBagOfWords
    from countinggrids.storage import load
    from countinggrids.uses import (
        BagCoarsener,
        BagScaler,
        CapacitySearch,
        GridClassifier,
        GridClusters,
        GridNeighbors,
        PlaceTracker,
        ScoreSpace,
    )

__version__ = version("countinggrids")

_HOMES = {
    "Collection": "collection",
    "bag": "bags",
    "load": "storage",
    "CountingGrid": "rows",
    "MixtureOfUnigrams": "rows",
    "SpatialBagOfWords": "rows",
    "DiscreteEpitome": "rows",
    "HybridEpitome": "rows",
    "BagCoarsener": "uses",
    "BagScaler": "uses",
    "CapacitySearch": "uses",
    "GridClassifier": "uses",
    "GridClusters": "uses",
    "GridNeighbors": "uses",
    "PlaceTracker": "uses",
    "ScoreSpace": "uses",
}
__all__ = [
    "BagCoarsener",
    "BagScaler",
    "CapacitySearch",
    "Collection",
    "CountingGrid",
    "DiscreteEpitome",
    "GridClassifier",
    "GridClusters",
    "GridNeighbors",
    "HybridEpitome",
    "MixtureOfUnigrams",
    "PlaceTracker",
    "ScoreSpace",
    "SpatialBagOfWords",
    "__version__",
    "bag",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that the package itself, and the command's help, load at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'countinggrids' has no attribute {name!r}")
    value = getattr(import_module(f"countinggrids.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
