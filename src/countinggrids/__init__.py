"""Counting grids: bags of features laid out on a torus, so that nearby windows explain similar bags."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection
    from countinggrids.data.estimator_file import save
    from countinggrids.features.bagger import Bagger, bag
    from countinggrids.meta import (
        BagCoarsener,
        BagScaler,
        CapacitySearch,
        GridClassifier,
        GridClusters,
        GridNeighbors,
        PlaceRecognizer,
        PlaceTracker,
        ScoreSpace,
        compare,
        find_regions,
        region_means,
    )
    from countinggrids.models import (
        ComponentialGrid,
        CountingGrid,
        DiscreteEpitome,
        ElasticGrid,
        HybridEpitome,
        MixtureOfUnigrams,
        SpatialBagOfWords,
    )
    from countinggrids.models.storage import load

__version__ = "0.2.0"

_HOMES = {
    "Collection": "data.collection",
    "bag": "features.bagger",
    "Bagger": "features.bagger",
    "load": "models.storage",
    "save": "data.estimator_file",
    "ComponentialGrid": "models",
    "CountingGrid": "models",
    "ElasticGrid": "models",
    "MixtureOfUnigrams": "models",
    "SpatialBagOfWords": "models",
    "DiscreteEpitome": "models",
    "HybridEpitome": "models",
    "BagCoarsener": "meta",
    "BagScaler": "meta",
    "CapacitySearch": "meta",
    "GridClassifier": "meta",
    "GridClusters": "meta",
    "GridNeighbors": "meta",
    "PlaceRecognizer": "meta",
    "PlaceTracker": "meta",
    "ScoreSpace": "meta",
    "compare": "meta",
    "find_regions": "meta",
    "region_means": "meta",
}
__all__ = [
    "BagCoarsener",
    "BagScaler",
    "Bagger",
    "CapacitySearch",
    "Collection",
    "ComponentialGrid",
    "CountingGrid",
    "DiscreteEpitome",
    "ElasticGrid",
    "GridClassifier",
    "GridClusters",
    "GridNeighbors",
    "HybridEpitome",
    "MixtureOfUnigrams",
    "PlaceRecognizer",
    "PlaceTracker",
    "ScoreSpace",
    "SpatialBagOfWords",
    "__version__",
    "bag",
    "compare",
    "find_regions",
    "load",
    "region_means",
    "save",
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
