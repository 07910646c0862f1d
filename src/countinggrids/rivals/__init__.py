"""Models that the paper compares with, on the same bags."""

from countinggrids.rivals.lda import LDA

__all__ = ["LDA"]
