"""Words in a film: each grows and moves to its place in the last frame."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from countinggrids.core import relevance, torus
from countinggrids.features.vocabulary import Vocabulary
from countinggrids.plot import painting
from countinggrids.plot.stage import Frame, Stage, font
from countinggrids.plot.wordmap import boxes_at, room, touches

MOST_WORDS, ENTRIES = 600, 2**19
"""Largest number of words recorded, the most frequent ones, and of entries of a frame."""
SMALLEST, LARGEST = 10, 34
"""Sizes of words in the last frame, in pixels."""
INK = (8, 20, 64)
FAINTEST = 0.08
"""Words of less opacity are left out."""
BEHIND, FADING = 0.1, 9
"""Opacity of a word behind another one, and number of frames over which it changes."""


class Track(NamedTuple):
    """A word in all frames of a film.

    Attributes
    ----------
    word : int
        Index among the recorded words.
    size : int
        Font size in the last frame, in pixels.
    places : ndarray of shape (n_frames, 2)
        Places, in cells of the rolled torus.
    strengths : ndarray of shape (n_frames,)
        Relevance, as a fraction of that in the last frame.
    aside : ndarray of shape (2,)
        Pixels by which it is displaced to avoid others.
    extent : ndarray of shape (2,)
        Width and height in pixels.
    """

    word: int
    size: int
    places: NDArray[np.float64]
    strengths: NDArray[np.float64]
    aside: NDArray[np.float64]
    extent: NDArray[np.float64]


class WordPainter:
    """Paints grids of words for a film.

    Parameters
    ----------
    vocabulary : Vocabulary
        The words.
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.kept: NDArray[np.int64] | None = None

    def record(self, pi: NDArray[Any]) -> NDArray[np.float16]:
        """Return pi of the most frequent words, relative to its mean in the first frame."""
        if self.kept is None:
            painting.check_vocabulary(pi, self.vocabulary)
            self.mean = relevance.mean_histogram(pi)
            n = min(MOST_WORDS, max(30, ENTRIES // prod(pi.shape[:2])))
            self.kept = np.sort(np.argsort(-self.mean, kind="stable")[:n])
        # Relative to the mean, because float16 has few digits for small numbers.
        return np.minimum(pi[:, :, self.kept] / (self.mean[self.kept] + relevance.FLOOR), 6e4).astype(np.float16)

    def small(self, frame: Frame) -> NDArray[Any]:
        """Return what was recorded of a frame, (n_rows, n_columns, n_words)."""
        return frame.picture

    def ready(self, frames: list[Frame], shifts: Any, stage: Stage) -> Callable[[int], Any]:
        """Return the function that paints a frame by its index."""
        from PIL import Image, ImageDraw

        tracks = self._tracks(frames, shifts, stage)
        free = _free(tracks, len(frames), stage)

        def paint(i: int) -> Any:
            cover = np.roll(frames[i].cover, shifts[i], (0, 1)).astype(np.float32) / 255
            shade = Image.fromarray(np.uint8(255 - 16 * cover))
            shade = shade.resize((stage.width, stage.height), Image.Resampling.BICUBIC)
            image = Image.merge("RGB", [shade, shade, Image.new("L", shade.size, 255)])
            pen = ImageDraw.Draw(image)
            shown = [free[i, word] * min(1.0, track.strengths[i]) for word, track in enumerate(tracks)]
            for word in np.argsort(shown, kind="stable"):
                if shown[word] < FAINTEST:
                    continue
                track = tracks[word]
                # Pillow draws no transparent text; on nearly white paper, pale text looks the same.
                ink = tuple(round(255 - shown[word] * (255 - part)) for part in INK)
                pen.text(_center(track, i, stage), self._name(track.word), ink, font(_size(track, i)), anchor="mm")
            return image

        return paint

    def _name(self, word: int) -> str:
        assert self.kept is not None
        return self.vocabulary.names[self.kept[word]]

    def _tracks(self, frames: list[Frame], shifts: Any, stage: Stage) -> list[Track]:
        """Choose the words of the last frame, place them, and track each back to the first frame."""
        assert self.kept is not None
        mean = self.mean[self.kept]
        last = np.roll(frames[-1].picture, shifts[-1], (0, 1)) * mean
        parts = [max(1, round(2 * n / w)) for n, w in zip(stage.grid, stage.window, strict=True)]
        chosen = painting.words(last, np.roll(frames[-1].cover, shifts[-1], (0, 1)), parts, 3)
        taken = np.empty((0, 4))
        tracks = []
        for word in chosen:
            size = round(max(SMALLEST, LARGEST * (word.weight / chosen[0].weight) ** 0.5))
            left, top, right, bottom = font(size).getbbox(self._name(word.feature), anchor="mm")
            extent = np.array([right - left, bottom - top], dtype=float)
            center = (np.array([[word.column, word.row]]) + 0.5) * stage.pitch
            found = room(center, extent[0] + 4, extent[1] + 4, taken, (0, 0, stage.width, stage.height))
            if found is not None:
                taken = np.vstack([taken, boxes_at(found, *(extent + 4))])
                places, strengths = _followed(frames, shifts, word, float(mean[word.feature]), stage.window)
                tracks.append(Track(word.feature, size, places, strengths, (found - center)[0], extent))
        return tracks


def _followed(
    frames: list[Frame], shifts: Any, word: painting.Word, mean: float, window: tuple[int, int]
) -> tuple[Any, Any]:
    """Track a word from its last place back, by mean shift towards where it is likely."""
    place = np.array([word.row, word.column])
    places, scores = np.empty((len(frames), 2)), np.empty(len(frames))
    grid = frames[0].cover.shape
    for i in range(len(frames) - 1, -1, -1):
        ratio = np.roll(frames[i].picture[:, :, word.feature].astype(np.float64), shifts[i], (0, 1))
        cells = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij"), axis=-1)
        ways = torus.displacement(place, cells, grid)
        near = np.exp(-0.5 * ((ways / (np.array(window) / 2)) ** 2).sum(axis=-1)) * ratio
        place = place + 0.5 * (near[..., None] * ways).sum(axis=(0, 1)) / max(near.sum(), 1e-9)
        here = float(near.sum() / max((near / np.maximum(ratio, 1e-9)).sum(), 1e-9)) * mean
        places[i], scores[i] = place, max(0.0, here * np.log(max(here, 1e-12) / mean))
    # Moved so that the track ends at the place of the word.
    return places - places[-1] + (word.row, word.column), (scores / max(scores[-1], 1e-12)).clip(0, 1.2)


def _free(tracks: list[Track], n_frames: int, stage: Stage) -> NDArray[Any]:
    """Compute opacities, (n_frames, n_words): a word fades while it overlaps a more distinctive one."""
    seen = np.ones((n_frames, len(tracks)))
    for i in range(n_frames):
        taken = np.empty((0, 4))
        for word in sorted(range(len(tracks)), key=lambda word: -tracks[word].strengths[i] * tracks[word].size):
            track = tracks[word]
            scale = _size(track, i) / track.size
            box = boxes_at(np.array([_center(track, i, stage)]), *(scale * track.extent))
            if touches(box, taken).any():
                seen[i, word] = BEHIND
            else:
                taken = np.vstack([taken, box])
    return uniform_filter1d(seen, FADING, axis=0, mode="nearest")


def _center(track: Track, i: int, stage: Stage) -> tuple[float, float]:
    """Return the center of a word in pixels: across and down."""
    row, column = (place % n for place, n in zip(track.places[i] + 0.5, stage.grid, strict=True))
    return column * stage.pitch + track.aside[0], row * stage.pitch + track.aside[1]


def _size(track: Track, i: int) -> int:
    return round(track.size * (0.4 + 0.6 * min(1.0, track.strengths[i]) ** 0.5))
