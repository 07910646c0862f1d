"""Feature extraction from images and texts: scikit-learn transformers that work on streams."""

from countinggrids.features.bagger import Bagger
from countinggrids.features.channels import Channels
from countinggrids.features.codebook import Codebook
from countinggrids.features.colors import Colors
from countinggrids.features.descriptors import Descriptors
from countinggrids.features.gist import Gist
from countinggrids.features.image_files import mirrored
from countinggrids.features.labels import LabelMaps
from countinggrids.features.maps import FeatureMap
from countinggrids.features.onnx_tokens import OnnxTokens
from countinggrids.features.outside import FunctionDescriptors
from countinggrids.features.sift import DenseSIFT
from countinggrids.features.stream import BadItemError, Stream
from countinggrids.features.text import Words
from countinggrids.features.textons import Textons
from countinggrids.features.vocabulary import Vocabulary

__all__ = [
    "BadItemError",
    "Bagger",
    "Channels",
    "Codebook",
    "Colors",
    "DenseSIFT",
    "Descriptors",
    "FeatureMap",
    "FunctionDescriptors",
    "Gist",
    "LabelMaps",
    "OnnxTokens",
    "Stream",
    "Textons",
    "Vocabulary",
    "Words",
    "mirrored",
]
