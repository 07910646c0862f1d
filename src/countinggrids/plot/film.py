"""The film of a model that learns: a callback records it, then it is cut, aligned and drawn."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from countinggrids import checks, painting, restarts, sources, torus
from countinggrids.em import Grid
from countinggrids.learn import Iteration
from countinggrids.plot import encode
from countinggrids.plot.stage import Frame, Pictures, Stage
from countinggrids.plot.writing import Writing

MEMORY = 2**27
"""Bytes that the recorded frames may take; with more, every second one is dropped."""
MOST_FRAMES = 400
"""And so many frames at the most."""
RATE = 1.02
"""Growth of beta in one iteration: slow enough that a layout forms well from a single try."""
COVERED = 4
"""Cells with less than the mean cover divided by this fade into the paper."""
NEAR = 2
"""Cells that a layout may wander from one frame to the next."""
PASSING = 0.1
"""How fast time passes where nothing happens, as a share of the film's mean pace."""


class Film:
    """Records a model while it learns; then writes a film in which the scene is seen assembling itself.

    Give it to `fit` as callback. What a model scouts on smaller grids is not recorded; `watchable` gives a model that
    learns on its whole grid from the start.

    Parameters
    ----------
    model : the model, fitted or not; its shapes are needed
    vocabulary : what the features are; a `Collection` will do
    bags : some bags, a handful, whose windows are outlined and seen moving to their places
    every : record every so many iterations; None records all and lets the film linger where much happens. Where that
        comes to more than 400 frames or 128 MB, every second frame is dropped

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from countinggrids import plot
    >>> from countinggrids.features import Vocabulary
    >>> X = np.random.default_rng(0).integers(0, 9, (20, 3))
    >>> model = plot.watchable(cg.CountingGrid((8, 8), (3, 3), random_state=0), X)
    >>> film = plot.Film(model, Vocabulary.of_colours(np.eye(3, dtype=np.uint8) * 255), X[:3], every=10)
    >>> model.fit(X, callback=film).n_iter_ // 10 == len(film.frames)
    True
    >>> film.write("learning.gif")  # doctest: +SKIP
    """

    def __init__(self, model: Any, vocabulary: Any, bags: Any = None, *, every: int | None = None):
        if every is not None and (not isinstance(every, int | np.integer) or every < 1):
            raise ValueError(f"every is {every!r}; wanted None or a number of iterations; give for instance every=5")
        grid, known = model._geometry().grid, getattr(vocabulary, "vocabulary", vocabulary)
        if len(grid) > 2:
            raise ValueError(f"the grid {grid} has {len(grid)} axes; wanted one or two to film; take fewer axes")
        self.bags, self.every = bags, every
        self.model = clone(model).set_params(
            init="uniform"
        )  # Frames are made from copies; a large init is no use there.
        self.painter = Writing(known) if known.kind == "words" else Pictures(known)
        self.frames: list[Frame] = []
        self.n_seen, self.stride = 0, every or 1

    def __call__(self, now: Iteration) -> None:
        """Record an iteration, if it is its turn."""
        if now.stage != "learning":
            return
        self.n_seen += 1
        if self.n_seen % self.stride:
            return
        self.frames.append(self._frame(_snapshot(self.model, now, self.bags), now.beta))
        n_bytes = sum(part.nbytes for part in self.frames[0][2:])
        if len(self.frames) > min(MOST_FRAMES, max(20, MEMORY // n_bytes)):
            self.frames, self.stride = self.frames[1::2], 2 * self.stride

    def _frame(self, model: Any, beta: float) -> Frame:
        cover = painting.coverage(model)
        cover = (255 * (COVERED * cover / cover.mean()).clip(max=1)).astype(np.uint8)
        places, trust = _windows(model, self.bags)
        return Frame(self.n_seen, beta, self.painter.record(painting.plane(model)), cover, places, trust)

    def pictures(self, size: int = 480, most: int = 150, beside: Any = None) -> "Reel":
        """Give the pictures of the film, (height, width, 3) each; they are drawn when they are asked for.

        Parameters
        ----------
        size : pixels along the longer side of the grid, about
        most : pictures at the most, where the film chooses them itself
        beside : (height, width, 3) uint8, a picture to show to the left; None shows none
        """
        if not self.frames:
            raise ValueError(
                "nothing was recorded; wanted a model that has learnt with this film as its callback; "
                "give every= fewer iterations, and fit(X, callback=film)"
            )
        shifts = drifts([self.painter.small(frame) for frame in self.frames]) + painting.seam(self.frames[-1].cover)
        chosen = range(len(self.frames)) if self.every else paced([frame.picture for frame in self.frames], most)
        window = self.model._geometry().window
        stage = Stage(self.frames[0].cover.shape, (1, *window) if len(window) == 1 else window, size, beside)
        paint = self.painter.ready(self.frames, shifts, stage)
        return Reel(chosen, lambda i: stage.draw(self.frames[i], shifts[i], paint(i)))

    def write(
        self, path: str | Path, fps: float = 12.0, size: int = 480, seconds: float = 12.0, beside: Any = None
    ) -> int:
        """Write the film as .gif, .mp4 or .webm, whole or not at all; tell how many pictures it has.

        Parameters
        ----------
        path : where to
        fps : pictures a second
        size : pixels along the longer side of the grid, about
        seconds : length of the film, where it chooses its pictures itself; the end is held two seconds longer
        beside : a picture to show to the left
        """
        encode.check(Path(path))
        pictures = self.pictures(size, max(2, round(fps * seconds)), beside)
        encode.write(Path(path), pictures, fps)
        return len(pictures)


class Reel(Sequence[NDArray[np.uint8]]):
    """The pictures of a film; only the one that is looked at is in memory."""

    def __init__(self, frames: Sequence[int], draw: Callable[[int], NDArray[np.uint8]]):
        self.frames, self.draw = frames, draw

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Reel(self.frames[index], self.draw)
        return self.draw(self.frames[index])


def watchable(model: Any, X: Any) -> Any:
    """Give a model like this one that anneals on its whole grid from the start, so that its film has no cuts.

    By default a model finds its layout on a small grid, in several tries, of which the best one is kept; that is
    quick and sure, and nothing to look at.

    Parameters
    ----------
    model : the model; one whose `anneal` is a schedule, or None, stays as it is
    X : the bags it will learn
    """
    if not isinstance(model.anneal, str):
        return clone(model)
    geometry = model._geometry()
    checks.check_options(model)
    table = sources.read(clone(model), X, is_fitting=True)
    n_features = checks.n_features_of(table, geometry)
    weights = np.ones(table.shape[0], table.dtype)
    cooling = restarts.automatic_cooling(table, weights, n_features, model.max_iter)
    rate = max(RATE, (cooling.end / cooling.start) ** (1 / max(1, model.max_iter // 2)))
    return clone(model).set_params(anneal=(cooling.start, rate, cooling.end), n_init=1)


def drifts(maps: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Tell how far to roll each frame so that it lies best over the next one, and so over the last, (frames, 2).

    A layout may wander over the torus while it forms; nothing in the model holds it.

    Parameters
    ----------
    maps : (rows, columns, channels) of each frame
    """
    shifts = np.zeros((len(maps), 2), np.int64)
    later = _wave(maps[-1])
    for i in range(len(maps) - 2, -1, -1):
        now = _wave(maps[i])
        match = np.fft.irfft2((later * now.conj()).sum(axis=2), maps[i].shape[:2], axes=(0, 1))
        step = np.array(np.unravel_index(match.argmax(), match.shape))
        step = torus.displacement((0, 0), step, match.shape).astype(np.int64)
        # From one frame to the next a layout moves by a cell or two; farther is another layout, or none yet.
        shifts[i] = shifts[i + 1] + (step if np.abs(step).max() <= NEAR else 0)
        later = now
    return shifts


def paced(pictures: list[NDArray[Any]], most: int) -> list[int]:
    """Choose frames so that about as much happens between any two, (at most `most`,); the last is among them."""
    if len(pictures) <= most:
        return list(range(len(pictures)))
    steps = [float(np.abs(a.astype(np.float32) - b).mean()) for a, b in pairwise(pictures)]
    pace = np.array(steps) / (np.mean(steps) or 1.0) + PASSING
    times = np.concatenate([[0], np.cumsum(pace)])
    return np.unique(np.searchsorted(times, np.linspace(0, times[-1], most)).clip(max=len(pictures) - 1)).tolist()


def _wave(planes: NDArray[Any]) -> NDArray[Any]:
    values = planes.astype(np.float32)
    return np.fft.rfft2(values - values.mean(axis=(0, 1)), axes=(0, 1))


def _snapshot(model: Any, now: Iteration, bags: Any) -> Any:
    """Make a fitted model of an iteration, as warm as that was."""
    copy = clone(model).set_params(anneal=(now.beta, 2.0, now.beta))
    copy._keep(Grid(np.moveaxis(now.pi, -1, 0), now.log_prior), copy._geometry())
    if bags is not None:
        copy.n_features_in_ = bags.shape[1]
    return copy


def _windows(model: Any, bags: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Give the most likely corners of some bags, and how much of the posterior lies there and right beside."""
    if bags is None:
        return np.zeros((0, 2), np.int64), np.zeros(0)
    grid = painting.plane(model).shape[:2]
    q = model.transform(bags).reshape(-1, *grid)
    near = torus.window_sum(np.roll(q, (1, 1), (1, 2)), [min(3, n) for n in grid]).reshape(len(q), -1)
    best = near.argmax(axis=1)
    places = np.stack(np.unravel_index(best, grid), axis=-1)
    return places, near[np.arange(len(q)), best].clip(0, 1)
