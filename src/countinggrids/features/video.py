"""Frames of videos."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features.limits import check_frame
from countinggrids.features.stream import BadItemError

SUFFIXES = frozenset({".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg"})


def is_video_path(path: Path) -> bool:
    """Return whether a file is a video, by its suffix."""
    return path.suffix.lower() in SUFFIXES


class Video:
    """The frames of a video at regular times; it can be iterated again and again.

    Parameters
    ----------
    path : path-like
        The file.
    every : float, default=1.0
        Seconds from one frame to the next.

    Attributes
    ----------
    times : list of float
        Times of the frames read so far, in seconds.
    """

    def __init__(self, path: str | Path, every: float = 1.0):
        if not every > 0:
            raise ValueError(f"every={every} must be a number of seconds above 0; use for instance every=1.0.")
        self.path, self.every = Path(path), every
        self.times: list[float] = []

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """Iterate over frames, (n_rows, n_columns, 3), RGB."""
        self.times = []
        capture, rate = _opened(self.path)
        try:
            number = 0
            while capture.grab():
                # The nearest frame to a time may begin up to half a frame before it.
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
        is_read, pixels = _frame(capture, seconds * rate)
    finally:
        capture.release()
    if not is_read:
        raise BadItemError(f"{path} has no frame at {seconds:g} s; expected a time within it; check the time.")
    return np.ascontiguousarray(pixels[..., ::-1])


def _frame(capture: Any, number: float) -> tuple[bool, Any]:
    if not 0 <= number < 2**53:  # also false for NaN
        return False, None
    capture.set(1, round(number))  # CAP_PROP_POS_FRAMES
    return capture.read()


def _opened(path: Path) -> tuple[Any, float]:
    """Open a video whose frames are small enough to be decoded; return it and its frames per second."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            'reading videos needs OpenCV; install it with pip install "countinggrids[images]".'
        ) from error

    _check_file(path)
    capture = cv2.VideoCapture(str(path))
    try:
        rate = capture.get(cv2.CAP_PROP_FPS)
        if not capture.isOpened() or not np.isfinite(rate) or rate <= 0:
            raise BadItemError(f"{path} cannot be opened; expected a video that OpenCV reads; convert it to MP4.")
        check_frame(path, capture.get(cv2.CAP_PROP_FRAME_WIDTH), capture.get(cv2.CAP_PROP_FRAME_HEIGHT))
    except BadItemError:
        capture.release()
        raise
    return capture, rate


def _check_file(path: Path) -> None:
    """Raise if a file is not a video, before a decoder sees it."""
    if not os.path.isfile(path):
        raise BadItemError(f"{path} does not exist; expected a video; check the path.")
    try:
        with open(path, "rb") as file:
            is_text = b"\0" not in file.read(4096)
    except OSError as error:
        raise BadItemError(
            f"{path} cannot be read ({error.strerror}); expected a video; check its permissions."
        ) from error
    if is_text:
        raise BadItemError(f"{path} is a text or empty; expected a video, not a playlist; use the video itself.")
