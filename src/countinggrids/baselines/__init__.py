"""Baselines: the models that the paper compares with, on the same bags, and on images."""

from countinggrids.baselines.epitome import Epitome
from countinggrids.baselines.epitomic import EpitomicPlaces
from countinggrids.baselines.histogram_svm import HistogramSVM
from countinggrids.baselines.lda import LDA
from countinggrids.baselines.places import Views, gist_places
from countinggrids.baselines.polya import PolyaMixture
from countinggrids.baselines.pyramid import PyramidClassifier, PyramidKernel
from countinggrids.baselines.reconfigurable import ReconfigurableBags
from countinggrids.baselines.sprites import FlexibleSprites
from countinggrids.baselines.stel import StelEpitome
from countinggrids.baselines.tessellated import Tessellated
from countinggrids.baselines.tfidf import TfidfBags
from countinggrids.meta.root_bags import RootBags

__all__ = [
    "LDA",
    "Epitome",
    "EpitomicPlaces",
    "FlexibleSprites",
    "HistogramSVM",
    "PolyaMixture",
    "PyramidClassifier",
    "PyramidKernel",
    "ReconfigurableBags",
    "RootBags",
    "StelEpitome",
    "Tessellated",
    "TfidfBags",
    "Views",
    "gist_places",
]
