"""Encoding of films as GIF, MP4 or WebM; a file is written whole or not at all."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.data import container

Picture = NDArray[np.uint8]

CODECS = {
    ".mp4": ("mp4", "libx264", {"crf": "20", "preset": "slow"}, {"movflags": "faststart"}),
    ".webm": ("webm", "libvpx-vp9", {"crf": "32", "b:v": "0"}, {}),
}
"""By suffix: container, codec, options of the codec (constant quality), options of the container."""
KINDS = (".gif", *CODECS)


def check(path: Path) -> None:
    """Raise, before any work, if a film cannot be written."""
    if path.suffix not in KINDS:
        raise ValueError(f"path={str(path)!r} must end in .gif, .mp4 or .webm; use for instance film.gif.")
    if path.suffix == ".gif":
        _pillow()
    else:
        _av(path.suffix)


def write(path: Path, pictures: Sequence[Picture], fps: float = 12.0, hold: float = 2.0) -> None:
    """Write a film.

    Parameters
    ----------
    path : Path
        File to write: .gif, .mp4 or .webm.
    pictures : sequence of ndarray of shape (height, width, 3)
        Pictures of one size, height and width even; they are read one at a time.
    fps : float, default=12.0
        Pictures per second.
    hold : float, default=2.0
        Seconds that the last picture is shown longer.
    """
    check(path)
    if path.suffix == ".gif":
        container.write_whole(path, lambda name: _write_gif(name, pictures, fps, hold))
    else:
        container.write_whole(path, lambda name: _write_video(name, path.suffix, pictures, fps, hold))


def _write_gif(name: str, pictures: Sequence[Picture], fps: float, hold: float) -> None:
    image = _pillow()
    # One palette for all frames: colors that do not change from frame to frame compress well.
    some = [pictures[i] for i in np.unique(np.linspace(0, len(pictures) - 1, 7).round().astype(int))]
    palette = image.fromarray(np.hstack(some)).quantize(255, method=image.Quantize.MEDIANCUT)
    indexed = (image.fromarray(each).quantize(palette=palette, dither=image.Dither.NONE) for each in pictures)
    each = max(20, round(1000 / fps / 10) * 10)  # a GIF counts in hundredths of a second, at least 2
    durations = [each] * (len(pictures) - 1) + [each + round(1000 * hold)]
    next(indexed).save(name, "GIF", save_all=True, append_images=indexed, duration=durations, loop=0, optimize=False)


def _write_video(name: str, suffix: str, pictures: Sequence[Picture], fps: float, hold: float) -> None:
    av = _av(suffix)
    form, codec, options, container_options = CODECS[suffix]
    with av.open(name, "w", format=form, options=container_options) as container:
        stream: Any = None
        for picture in _held(pictures, round(fps * hold)):
            if stream is None:
                stream = container.add_stream(codec, rate=Fraction(fps).limit_denominator(1000), options=options)
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = "yuv420p"  # the only one that every browser and phone plays
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")))
        container.mux(stream.encode())


def _held(pictures: Sequence[Picture], n: int) -> Iterator[Picture]:
    """Iterate over pictures, and over the last one n more times."""
    yield from pictures
    last = pictures[-1]
    for _ in range(n):
        yield last


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('films need Pillow; install it with pip install "countinggrids[plot]".') from error
    return Image


def _av(suffix: str) -> Any:
    try:
        import av
    except ImportError as error:
        message = f'{suffix} needs PyAV; install it with pip install "countinggrids[plot]", or write a .gif.'
        raise ImportError(message) from error
    codec = CODECS[suffix][1]
    if codec not in av.codecs_available:
        raise ImportError(f"{suffix} needs the codec {codec}, which this PyAV was built without; write a .gif.")
    return av
