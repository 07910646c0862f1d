"""Baselines: the models that the paper compares with, on the same bags, and on images."""

from countinggrids.baselines.epitome import Epitome
from countinggrids.baselines.epitomic import EpitomicPlaces
from countinggrids.baselines.fabmap import FabMap
from countinggrids.baselines.histogram_svm import HistogramSVM
from countinggrids.baselines.lda import LDA
from countinggrids.baselines.places import Views, gist_places
from countinggrids.baselines.polya import PolyaMixture
from countinggrids.baselines.pyramid import PyramidClassifier, PyramidKernel
from countinggrids.baselines.reconfigurable import ReconfigurableBags
from countinggrids.baselines.sequence_matching import SequenceMatcher
from countinggrids.baselines.sprites import FlexibleSprites
from countinggrids.baselines.standardized import StandardizedVectors
from countinggrids.baselines.stel import StelEpitome
from countinggrids.baselines.tessellated import Tessellated
from countinggrids.baselines.tfidf import TfidfBags
from countinggrids.baselines.vlad import VLAD
from countinggrids.meta.root_bags import RootBags

__all__ = [
    "LDA",
    "VLAD",
    "Epitome",
    "EpitomicPlaces",
    "FabMap",
    "FlexibleSprites",
    "HistogramSVM",
    "PolyaMixture",
    "PyramidClassifier",
    "PyramidKernel",
    "ReconfigurableBags",
    "RootBags",
    "SequenceMatcher",
    "StandardizedVectors",
    "StelEpitome",
    "Tessellated",
    "TfidfBags",
    "Views",
    "gist_places",
]
