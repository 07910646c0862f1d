"""Models that the paper compares with, on the same bags, and on images."""

from countinggrids.rivals.epitome import Epitome
from countinggrids.rivals.epitomic import EpitomicPlaces
from countinggrids.rivals.lda import LDA
from countinggrids.rivals.places import Views, gist_places
from countinggrids.rivals.polya import PolyaMixture
from countinggrids.rivals.pyramid import PyramidClassifier, PyramidKernel
from countinggrids.rivals.reconfigurable import ReconfigurableBags
from countinggrids.rivals.stel import StelEpitome
from countinggrids.rivals.tessellated import Tessellated

__all__ = [
    "LDA",
    "Epitome",
    "EpitomicPlaces",
    "PolyaMixture",
    "PyramidClassifier",
    "PyramidKernel",
    "ReconfigurableBags",
    "StelEpitome",
    "Tessellated",
    "Views",
    "gist_places",
]
