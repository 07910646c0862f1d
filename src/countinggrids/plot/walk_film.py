"""Films of a walk: each frame, the reference frame that it was recognized as, and where both are on the map."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.meta.nested import innermost
from countinggrids.plot import encode, painting
from countinggrids.plot.film import Reel
from countinggrids.plot.stage import COLORS, GAP, INK, PAPER, font

Picture = NDArray[np.uint8]
CAPTION = 26
"""Pixels above a picture for its caption."""


class WalkFilm:
    """Pictures of a walk with its map.

    Parameters
    ----------
    recognizer : PlaceRecognizer
        Fitted to the reference walk; its grid is the map.
    reference : Collection
        The reference walk.
    query : Collection
        The walk that was recognized.
    posterior : ndarray of shape (n_queries, n_references)
        Probability of each reference frame.
    size : int, default=420
        Approximate number of pixels along a side of the map.
    """

    def __init__(self, recognizer: Any, reference: Any, query: Any, posterior: NDArray[Any], size: int = 420):
        if recognizer.neighbors_ is None:
            raise ValueError("use='bags' fits no grid for the map of the film; use 'auto'.")
        model = innermost(recognizer.neighbors_.model_)
        grid = painting.as_two_axes(model.geometry_.grid)
        self.reference, self.query, self.posterior = reference, query, posterior
        self.window = painting.as_two_axes(model.geometry_.window)
        self.pitch = max(2, size // max(grid))
        self.shape = (grid[0] * self.pitch, grid[1] * self.pitch)
        usage = painting.coverage(model).reshape(grid)
        self.shift = painting.seam(usage)
        cells = recognizer.neighbors_.locations_.reshape(posterior.shape[1], -1)
        cells = np.pad(cells, ((0, 0), (2 - cells.shape[1], 0)))
        self.cells = (cells + np.asarray(self.shift)) % np.asarray(grid)
        self.map = self._map(model, reference.vocabulary, usage)

    def pictures(self) -> Reel:
        """Return the pictures; each is drawn when it is accessed.

        Returns
        -------
        pictures : Reel
            A sequence of ndarray of shape (height, width, 3).
        """
        return Reel(range(len(self.query)), self._draw)

    def write(self, path: str | Path, fps: float = 8.0) -> int:
        """Write the film; a file is written whole or not at all.

        Parameters
        ----------
        path : path-like
            File to write: .gif, .mp4 or .webm.
        fps : float, default=8.0
            Pictures per second.

        Returns
        -------
        n_pictures : int
            Number of pictures.
        """
        encode.write(Path(path), self.pictures(), fps)
        return len(self.query)

    def _map(self, model: Any, vocabulary: Any, usage: NDArray[Any]) -> Any:
        """Paint the grid where features have colors, and its usage elsewhere."""
        from PIL import Image

        try:
            pixels = painting.picture(painting.plane(model), vocabulary, self.pitch)
        except ValueError:
            gray = (255 - 160 * usage / max(float(usage.max()), 1e-12)).astype(np.uint8)
            pixels = np.repeat(np.kron(gray, np.ones((self.pitch, self.pitch), np.uint8))[..., None], 3, axis=2)
        rolled = np.roll(pixels, np.asarray(self.shift) * self.pitch, (0, 1))
        pale = (255 - (255 - rolled.astype(np.float64)) * 0.6).astype(np.uint8)
        return Image.fromarray(pale).resize((self.shape[1], self.shape[0]))

    def _draw(self, number: int) -> Picture:
        from PIL import Image, ImageDraw

        best = int(self.posterior[number].argmax())
        side = (self.shape[0] - CAPTION - GAP) // 2
        height, width = CAPTION + self.shape[0], side * 16 // 9 + GAP + self.shape[1]
        whole = Image.new("RGB", (width + width % 2, height + height % 2), PAPER)
        pen = ImageDraw.Draw(whole)
        top = 0
        for text, walk, index in ((f"frame {number}", self.query, number), (f"found: {best}", self.reference, best)):
            pen.text((2, top + 4), text, INK, font(14))
            shown = Image.fromarray(walk.thumbnail(index, 640))
            shown.thumbnail((side * 16 // 9, side))
            whole.paste(shown, (0, top + CAPTION))
            top += CAPTION + side + GAP // 2
        left = side * 16 // 9 + GAP
        pen.text((left, 4), f"map, probability {self.posterior[number, best]:.2f}", INK, font(14))
        whole.paste(self._located(number, best), (left, CAPTION))
        return np.asarray(whole)

    def _located(self, number: int, best: int) -> Any:
        """Draw the reference walk on the map, dots by their probability, and the window of the best frame."""
        from PIL import ImageDraw

        shown = self.map.copy()
        pen = ImageDraw.Draw(shown, "RGBA")
        radius = max(2, self.pitch // 3)
        middle = np.asarray(self.window) / 2
        strength = np.sqrt(self.posterior[number] / max(float(self.posterior[number].max()), 1e-12))
        for frame in np.argsort(strength, kind="stable"):
            row, column = ((self.cells[frame] + middle) * self.pitch) % np.asarray(self.shape)
            color = tuple(int(255 * s) for s in (0.25 + 0.65 * strength[frame], 0.25 * (1 - strength[frame]), 0.25))
            box = (column - radius, row - radius, column + radius, row + radius)
            pen.ellipse(box, fill=(*color, int(60 + 195 * strength[frame])))
        row, column = self.cells[best] * self.pitch
        for down in (0, -self.shape[0]):
            for across in (0, -self.shape[1]):
                corner = (column + across, row + down)
                size = (self.window[1] * self.pitch, self.window[0] * self.pitch)
                pen.rectangle((*corner, corner[0] + size[0], corner[1] + size[1]), outline=(*COLORS[0], 255), width=2)
        return shown
