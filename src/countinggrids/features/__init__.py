"""From images and texts to features: scikit-learn transformers that stream."""

from countinggrids.features.codebook import Codebook
from countinggrids.features.colours import Colours
from countinggrids.features.gist import Gist
from countinggrids.features.labels import LabelMaps
from countinggrids.features.maps import FeatureMap
from countinggrids.features.pictures import mirrored
from countinggrids.features.sift import DenseSIFT
from countinggrids.features.stream import BadItemError, Stream
from countinggrids.features.text import Words
from countinggrids.features.textons import Textons
from countinggrids.features.vocabulary import Vocabulary

__all__ = [
    "BadItemError",
    "Codebook",
    "Colours",
    "DenseSIFT",
    "FeatureMap",
    "Gist",
    "LabelMaps",
    "Stream",
    "Textons",
    "Vocabulary",
    "Words",
    "mirrored",
]
