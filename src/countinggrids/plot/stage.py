"""The pictures of a film: the grid with the windows of some bags, and a caption."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countinggrids.features.vocabulary import Vocabulary
from countinggrids.plot import painting
from countinggrids.plot.canvas import FlatTorus

Picture = NDArray[np.uint8]

PAPER, INK = (255, 255, 255), (40, 40, 40)
COLORS = ((227, 26, 28), (255, 200, 0), (31, 120, 255), (40, 200, 70), (200, 60, 220), (0, 210, 210))
"""Colors of the outlines of bags."""
GAP, CAPTION = 12, 30
"""Pixels between panels, and of the caption."""
PATCH_PIXELS = 384
"""Pixels along the longer side of a recorded picture of patches."""
LARGEST_GAIN = 1.5
"""Largest factor by which contrast is raised."""


class Frame(NamedTuple):
    """A recorded iteration.

    Attributes
    ----------
    number : int
        Number of the iteration, from 1.
    beta : float
        Inverse temperature.
    picture : ndarray
        What the painter recorded.
    cover : ndarray of shape (n_rows, n_columns)
        Coverage of cells by bags, uint8, from 0 to 255.
    places : ndarray of shape (n_bags, 2)
        First cells of the windows of the outlined bags.
    probabilities : ndarray of shape (n_bags,)
        Posterior in and around these windows.
    """

    number: int
    beta: float
    picture: NDArray[Any]
    cover: NDArray[np.uint8]
    places: NDArray[np.int64]
    probabilities: NDArray[np.float64]


class Stage:
    """The layout of the pictures of a film.

    Parameters
    ----------
    grid : tuple of int
        Rows and columns.
    window : tuple of int
        Rows and columns of a window.
    size : int
        Approximate number of pixels along the longer side of the grid; cells have whole pixels.
    beside : ndarray of shape (height, width, 3) or None
        A picture to the left of the grid.
    """

    def __init__(self, grid: tuple[int, int], window: tuple[int, int], size: int, beside: Picture | None):
        from PIL import Image

        self.grid, self.window = grid, window
        self.pitch = max(1, size // max(grid))
        self.height, self.width = (n * self.pitch for n in grid)
        self.left = 0
        if beside is not None:
            self.left = round(beside.shape[1] * self.height / beside.shape[0]) + GAP
        # Video codecs need even sides.
        even = [n + n % 2 for n in (self.height + CAPTION, self.left + self.width)]
        self.canvas = Image.new("RGB", (even[1], even[0]), PAPER)
        if beside is not None:
            self.canvas.paste(Image.fromarray(beside).resize((self.left - GAP, self.height)), (0, 0))

    def draw(self, frame: Frame, shift: Any, panel: Any) -> Picture:
        """Return the picture of a frame: a panel with outlines and a caption."""
        from PIL import Image, ImageDraw

        outlines = Image.new("RGBA", panel.size)
        pen = ImageDraw.Draw(outlines)
        flat = FlatTorus(self.grid, (int(shift[0]), int(shift[1])), (1, 1))
        for bag, (place, probability) in enumerate(zip(frame.places, frame.probabilities, strict=True)):
            for row, column in flat.rectangles(place, self.window):
                top, left = round((row + 0.5) * self.pitch), round((column + 0.5) * self.pitch)
                box = (left, top, left + self.window[1] * self.pitch - 1, top + self.window[0] * self.pitch - 1)
                pen.rectangle(box, outline=(*COLORS[bag % len(COLORS)], round(255 * probability)), width=2)
        whole = self.canvas.copy()
        whole.paste(Image.alpha_composite(panel.convert("RGBA"), outlines).convert("RGB"), (self.left, 0))
        text = f"iteration {frame.number}    beta {frame.beta:.3g}"
        ImageDraw.Draw(whole).text((self.left + 2, self.height + 8), text, INK, font(14))
        return np.asarray(whole)

    def faded(self, image: Any, cover: NDArray[np.uint8]) -> Any:
        """Fade cells that no bag covers to white."""
        from PIL import Image

        mask = Image.fromarray(cover).resize(image.size, Image.Resampling.BILINEAR)
        return Image.composite(image, Image.new("RGB", image.size, PAPER), mask)


class PicturePainter:
    """Paints grids of colors, patches or labels for a film.

    Parameters
    ----------
    vocabulary : Vocabulary
        The features.
    """

    def __init__(self, vocabulary: Vocabulary):
        painting.colors_of(vocabulary)  # raises, before any work, if there are no colors
        self.vocabulary = vocabulary

    def record(self, pi: NDArray[Any]) -> Picture:
        """Return the picture of a frame, as it is recorded."""
        pitch = 1 if self.vocabulary.patches is None else max(2, PATCH_PIXELS // max(pi.shape[:2]))
        return painting.picture(pi, self.vocabulary, pitch)

    def small(self, frame: Frame) -> NDArray[Any]:
        """Return the picture of a frame with one pixel per cell, (n_rows, n_columns, 3)."""
        rows, columns = frame.cover.shape
        return frame.picture.reshape(rows, len(frame.picture) // rows, columns, -1, 3).mean(axis=(1, 3))

    def ready(self, frames: list[Frame], shifts: Any, stage: Stage) -> Callable[[int], Any]:
        """Return the function that paints a frame by its index."""
        from PIL import Image

        aim = _contrast(self.small(frames[-1]), frames[-1].cover)

        def paint(i: int) -> Any:
            frame = frames[i]
            rolled = np.roll(frame.picture, shifts[i] * (len(frame.picture) // len(frame.cover)), (0, 1))
            if self.vocabulary.kind != "labels":
                rolled = _raised(rolled, aim / max(_contrast(self.small(frame), frame.cover), 1e-6))
            is_small = self.vocabulary.patches is None
            how = Image.Resampling.NEAREST if is_small else Image.Resampling.BICUBIC
            image = Image.fromarray(rolled).resize((stage.width, stage.height), how)
            return stage.faded(image, np.roll(frame.cover, shifts[i], (0, 1)))

        return paint


@lru_cache(maxsize=64)
def font(size: int) -> Any:
    """Load the font of matplotlib, which has more characters than that of Pillow."""
    from matplotlib.font_manager import findfont
    from PIL import ImageFont

    return ImageFont.truetype(findfont("DejaVu Sans"), size)


def framed(pictures: list[Picture], height: int = 480) -> Picture | None:
    """Stack pictures vertically, each in a frame of the color of its outline; None if there are none."""
    from PIL import Image

    if not pictures:
        return None
    side = (height - GAP * (len(pictures) - 1)) // len(pictures)
    whole = Image.new("RGB", (side, height), PAPER)
    for i, picture in enumerate(pictures):
        shown = Image.fromarray(picture)
        shown.thumbnail((side - 8, side - 8))
        bordered = Image.new("RGB", (shown.width + 8, shown.height + 8), COLORS[i % len(COLORS)])
        bordered.paste(shown, (4, 4))
        whole.paste(bordered, ((side - bordered.width) // 2, i * (side + GAP) + (side - bordered.height) // 2))
    return np.asarray(whole)


def _contrast(cells: NDArray[Any], cover: NDArray[np.uint8]) -> float:
    """Compute the standard deviation of colors, weighted by coverage."""
    weights = (cover + 1.0)[..., None] / (cover + 1.0).sum()
    mean = (weights * cells).sum(axis=(0, 1))
    return float(np.sqrt((weights * (cells - mean) ** 2).sum(axis=(0, 1))).mean())


def _raised(picture: Picture, wanted: float) -> Picture:
    """Raise the contrast of a picture around its mean color, up to a limit."""
    gain = min(LARGEST_GAIN, max(1.0, wanted))
    mean = picture.mean(axis=(0, 1))
    return (mean + gain * (picture - mean)).clip(0, 255).round().astype(np.uint8)
