"""Readers of folders and of published data sets."""

from countinggrids.datasets.readers import (
    ap,
    folder,
    frames,
    ietower,
    indoor67,
    labelme,
    newsgroups,
    scenes15,
    video,
)

__all__ = ["ap", "folder", "frames", "ietower", "indoor67", "labelme", "newsgroups", "scenes15", "video"]
