"""Estimators and functions on grids: classification, selection, tracking, neighbors, scores, clusters, regions."""

from countinggrids.meta.classifier import GridClassifier
from countinggrids.meta.clusters import GridClusters
from countinggrids.meta.comparison import compare, region_means
from countinggrids.meta.neighbors import GridNeighbors
from countinggrids.meta.recognizer import PlaceRecognizer
from countinggrids.meta.regions import find_regions
from countinggrids.meta.retrieval import pose_matches, precision_recall, recall_at, true_matches
from countinggrids.meta.root_bags import RootBags
from countinggrids.meta.scaling import BagCoarsener, BagScaler
from countinggrids.meta.scores import ScoreSpace
from countinggrids.meta.search import CapacitySearch
from countinggrids.meta.tracker import PlaceTracker

__all__ = [
    "BagCoarsener",
    "BagScaler",
    "CapacitySearch",
    "GridClassifier",
    "GridClusters",
    "GridNeighbors",
    "PlaceRecognizer",
    "PlaceTracker",
    "RootBags",
    "ScoreSpace",
    "compare",
    "find_regions",
    "pose_matches",
    "precision_recall",
    "recall_at",
    "region_means",
    "true_matches",
]
