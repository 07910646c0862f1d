"""Frames of a video, at regular times."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features.stream import BadItemError

SUFFIXES = frozenset({".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg"})


def is_video_path(path: Path) -> bool:
    """Tell from its name whether a file is a video."""
    return path.suffix.lower() in SUFFIXES


class Video:
    """The frames of a video, one every so many seconds; it can be gone through again and again.

    Parameters
    ----------
    path : the file
    every : seconds from one frame to the next

    Attributes
    ----------
    times : the seconds at which frames were read, filled as the video is gone through
    """

    def __init__(self, path: str | Path, every: float = 1.0):
        if not every > 0:
            raise ValueError(f"every is {every}; wanted seconds above 0; give for instance 1.0")
        self.path, self.every = Path(path), every
        self.times: list[float] = []

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """Give RGB pixels, (rows, columns, 3)."""
        self.times = []
        capture, rate = _opened(self.path)
        try:
            number = 0
            while capture.grab():
                # The frame nearest to the time asked for: half a frame early will do.
                if (number + 0.5) / rate >= len(self.times) * self.every:
                    is_read, pixels = capture.retrieve()
                    if not is_read:
                        break
                    self.times.append(number / rate)
                    yield np.ascontiguousarray(pixels[..., ::-1])
                number += 1
        finally:
            capture.release()


def frame_at(path: str | Path, seconds: float) -> NDArray[np.uint8]:
    """Read the RGB frame that a video shows at a time."""
    capture, rate = _opened(Path(path))
    try:
        capture.set(1, round(seconds * rate))  # CAP_PROP_POS_FRAMES
        is_read, pixels = capture.read()
    finally:
        capture.release()
    if not is_read:
        raise BadItemError(f"{path} has no frame at {seconds:g} s; wanted a time within it; check the time")
    return np.ascontiguousarray(pixels[..., ::-1])


def _opened(path: Path) -> tuple[Any, float]:
    try:
        import cv2
    except ImportError as error:
        raise ImportError('reading videos needs OpenCV; pip install "countinggrids[images]" brings it') from error

    if not path.is_file():
        raise BadItemError(f"{path} is not there; wanted a video; check the path")
    with open(path, "rb") as file:
        if b"\0" not in file.read(4096):
            raise BadItemError(
                f"{path} is a text or empty; wanted a video, not a list of others; name the video itself"
            )
    capture = cv2.VideoCapture(str(path))
    rate = capture.get(cv2.CAP_PROP_FPS)
    if not capture.isOpened() or not np.isfinite(rate) or rate <= 0:
        capture.release()
        raise BadItemError(f"{path} cannot be opened; wanted a video that OpenCV reads; convert it to MP4")
    return capture, rate
