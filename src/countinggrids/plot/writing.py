"""Words for a film: each grows and drifts to where it is written in the end."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from countinggrids import painting, torus
from countinggrids.features.vocabulary import Vocabulary
from countinggrids.plot.stage import Frame, Stage, font
from countinggrids.plot.wordmap import boxes_at, room, touches

MOST_WORDS, ENTRIES = 600, 2**19
"""The most frequent words are recorded: so many at the most, and so many numbers a frame."""
SMALLEST, LARGEST = 10, 34
"""Sizes of words in the last frame, in pixels."""
INK = (8, 20, 64)
FAINTEST = 0.08
"""Words paler than this are left out."""
BEHIND, FADING = 0.1, 9
"""How much is seen of a word behind another one, and over how many frames that changes."""


class Track(NamedTuple):
    """A word through the film.

    Attributes
    ----------
    word : which of the recorded ones
    size : in the last frame, in pixels
    places : (frames, 2) where it is, in cells of the rolled torus
    strengths : (frames,) how much it tells there, as a share of the last frame's
    aside, extent : (2,) pixels by which it makes room for others, and its width and height
    """

    word: int
    size: int
    places: NDArray[np.float64]
    strengths: NDArray[np.float64]
    aside: NDArray[np.float64]
    extent: NDArray[np.float64]


class Writing:
    """Writes grids of words for a film."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.kept: NDArray[np.int64] | None = None

    def record(self, pi: NDArray[Any]) -> NDArray[np.float16]:
        """Give (rows, columns, words) of the most frequent words, each as a share of its mean in the first frame."""
        if self.kept is None:
            painting.check_vocabulary(pi, self.vocabulary)
            self.mean = painting.mean_histogram(pi)
            n = min(MOST_WORDS, max(30, ENTRIES // prod(pi.shape[:2])))
            self.kept = np.sort(np.argsort(-self.mean, kind="stable")[:n])
        # Float16 has few digits for what is small: shares of the mean are near one.
        return np.minimum(pi[:, :, self.kept] / (self.mean[self.kept] + painting.FLOOR), 6e4).astype(np.float16)

    def small(self, frame: Frame) -> NDArray[Any]:
        return frame.picture

    def ready(self, frames: list[Frame], shifts: Any, stage: Stage) -> Callable[[int], Any]:
        """Give what writes a frame by its number."""
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
                # Pillow writes no transparent letters; on paper that is nearly white, pale ones look the same.
                ink = tuple(round(255 - shown[word] * (255 - part)) for part in INK)
                pen.text(_centre(track, i, stage), self._name(track.word), ink, font(_size(track, i)), anchor="mm")
            return image

        return paint

    def _name(self, word: int) -> str:
        assert self.kept is not None
        return self.vocabulary.names[self.kept[word]]

    def _tracks(self, frames: list[Frame], shifts: Any, stage: Stage) -> list[Track]:
        """Choose the words of the last frame, find room for them, and follow each back to the first."""
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
            centre = (np.array([[word.column, word.row]]) + 0.5) * stage.pitch
            found = room(centre, extent[0] + 4, extent[1] + 4, taken, (0, 0, stage.width, stage.height))
            if found is not None:
                taken = np.vstack([taken, boxes_at(found, *(extent + 4))])
                places, strengths = _followed(frames, shifts, word, float(mean[word.feature]), stage.window)
                tracks.append(Track(word.feature, size, places, strengths, (found - centre)[0], extent))
        return tracks


def _followed(
    frames: list[Frame], shifts: Any, word: painting.Word, mean: float, window: tuple[int, int]
) -> tuple[Any, Any]:
    """Follow a word from its last place back, uphill to where it is most at home near by."""
    place = np.array([word.row, word.column])
    places, scores = np.empty((len(frames), 2)), np.empty(len(frames))
    grid = frames[0].cover.shape
    for i in range(len(frames) - 1, -1, -1):
        share = np.roll(frames[i].picture[:, :, word.feature].astype(np.float64), shifts[i], (0, 1))
        cells = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij"), axis=-1)
        ways = torus.displacement(place, cells, grid)
        near = np.exp(-0.5 * ((ways / (np.array(window) / 2)) ** 2).sum(axis=-1)) * share
        place = place + 0.5 * (near[..., None] * ways).sum(axis=(0, 1)) / max(near.sum(), 1e-9)
        here = float(near.sum() / max((near / np.maximum(share, 1e-9)).sum(), 1e-9)) * mean
        places[i], scores[i] = place, max(0.0, here * np.log(max(here, 1e-12) / mean))
    # The word ends where it is written, and all its way is moved with it.
    return places - places[-1] + (word.row, word.column), (scores / max(scores[-1], 1e-12)).clip(0, 1.2)


def _free(tracks: list[Track], n_frames: int, stage: Stage) -> NDArray[Any]:
    """Tell how far each word is seen, (frames, words): one that touches a more telling one steps back for a while."""
    seen = np.ones((n_frames, len(tracks)))
    for i in range(n_frames):
        taken = np.empty((0, 4))
        for word in sorted(range(len(tracks)), key=lambda word: -tracks[word].strengths[i] * tracks[word].size):
            track = tracks[word]
            scale = _size(track, i) / track.size
            box = boxes_at(np.array([_centre(track, i, stage)]), *(scale * track.extent))
            if touches(box, taken).any():
                seen[i, word] = BEHIND
            else:
                taken = np.vstack([taken, box])
    return uniform_filter1d(seen, FADING, axis=0, mode="nearest")


def _centre(track: Track, i: int, stage: Stage) -> tuple[float, float]:
    """Give where a word is written, in pixels: across and down."""
    row, column = (place % n for place, n in zip(track.places[i] + 0.5, stage.grid, strict=True))
    return column * stage.pitch + track.aside[0], row * stage.pitch + track.aside[1]


def _size(track: Track, i: int) -> int:
    return round(track.size * (0.4 + 0.6 * min(1.0, track.strengths[i]) ** 0.5))
