"""What grids are good for: classify, choose, track, label, discriminate, cluster."""

from countinggrids.uses.classifier import GridClassifier
from countinggrids.uses.clusters import GridClusters
from countinggrids.uses.neighbours import GridNeighbors
from countinggrids.uses.scaling import BagCoarsener, BagScaler
from countinggrids.uses.scores import ScoreSpace
from countinggrids.uses.search import CapacitySearch
from countinggrids.uses.tracker import PlaceTracker

__all__ = [
    "BagCoarsener",
    "BagScaler",
    "CapacitySearch",
    "GridClassifier",
    "GridClusters",
    "GridNeighbors",
    "PlaceTracker",
    "ScoreSpace",
]
