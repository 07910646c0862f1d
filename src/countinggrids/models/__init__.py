"""The models as scikit-learn estimators."""

from countinggrids.models.base import GridModel
from countinggrids.models.componential import ComponentialGrid
from countinggrids.models.counting_grid import CountingGrid
from countinggrids.models.elastic import ElasticGrid
from countinggrids.models.epitomes import DiscreteEpitome, HybridEpitome
from countinggrids.models.mixtures import MixtureOfUnigrams, SpatialBagOfWords

__all__ = [
    "ComponentialGrid",
    "CountingGrid",
    "DiscreteEpitome",
    "ElasticGrid",
    "GridModel",
    "HybridEpitome",
    "MixtureOfUnigrams",
    "SpatialBagOfWords",
]
