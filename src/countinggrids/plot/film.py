"""Films of training: a callback records iterations, which are then selected, aligned and drawn."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from countinggrids.core import torus
from countinggrids.core.geometry import Geometry
from countinggrids.data import readers, validation
from countinggrids.data.constraints import check_parameters
from countinggrids.plot import encode, painting
from countinggrids.plot.stage import Frame, PicturePainter, Stage
from countinggrids.plot.writing import WordPainter
from countinggrids.training import initialization
from countinggrids.training.callbacks import Iteration

MEMORY = 2**27
"""Limit for the recorded frames in bytes; beyond it, every second one is dropped."""
MOST_FRAMES = 400
"""Limit for the number of recorded frames."""
RATE = 1.02
"""Growth of beta in one iteration: slow enough for a good layout from a single run."""
COVERED = 4
"""Cells with less than the mean coverage divided by this fade to white."""
NEAR = 2
"""Cells that a layout may move from one frame to the next."""
PASSING = 0.1
"""Pace where nothing changes, as a fraction of the mean pace."""


class Film:
    """A callback that records the training of a model, and writes it as a film.

    Candidates on smaller grids are not recorded; `watchable` returns a model that is trained on its full grid from the
    start.

    Parameters
    ----------
    model : estimator
        The model, fitted or not.
    vocabulary : Vocabulary or Collection
        The features.
    bags : array-like or sparse matrix of shape (n_bags, n_columns), default=None
        A few bags whose windows are outlined.
    every : int, default=None
        Record every so many iterations. None records all of them, and the film selects those where much changes. Beyond
        400 frames or 128 MB, every second frame is dropped.

    Attributes
    ----------
    frames : list of Frame
        The recorded iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from countinggrids import plot
    >>> from countinggrids.features import Vocabulary
    >>> X = np.random.default_rng(0).integers(0, 9, (20, 3))
    >>> model = plot.watchable(cg.CountingGrid((8, 8), (3, 3), random_state=0), X)
    >>> film = plot.Film(model, Vocabulary.of_colors(np.eye(3, dtype=np.uint8) * 255), X[:3], every=10)
    >>> model.fit(X, callback=film).n_iter_ // 10 == len(film.frames)
    True
    >>> film.write("learning.gif")  # doctest: +SKIP
    """

    def __init__(self, model: Any, vocabulary: Any, bags: Any = None, *, every: int | None = None):
        if every is not None and (not isinstance(every, int | np.integer) or every < 1):
            raise ValueError(f"every={every!r} must be None or a number of iterations; use for instance every=5.")
        known = getattr(vocabulary, "vocabulary", vocabulary)
        self.geometry: Geometry = model._geometry()
        grid = self.geometry.grid
        if len(grid) > 2:
            raise ValueError(f"grid={grid} has {len(grid)} axes; expected one or two to film; use fewer axes.")
        self.bags, self.every = bags, every
        self.model = clone(model).set_params(init="uniform")  # it is copied for each frame, better without a large init
        self.painter = WordPainter(known) if known.kind == "words" else PicturePainter(known)
        self.frames: list[Frame] = []
        self.n_seen, self.stride = 0, every or 1

    def __call__(self, now: Iteration) -> None:
        """Record an iteration.

        Parameters
        ----------
        now : Iteration
            The iteration.
        """
        if now.stage != "learning":
            return
        self.n_seen += 1
        if self.n_seen % self.stride:
            return
        self.frames.append(self._frame(self._fitted(now), now.beta))
        n_bytes = sum(part.nbytes for part in self.frames[0][2:])
        if len(self.frames) > min(MOST_FRAMES, max(20, MEMORY // n_bytes)):
            self.frames, self.stride = self.frames[1::2], 2 * self.stride

    def _fitted(self, now: Iteration) -> Any:
        """Return the model as fitted by an iteration, at its inverse temperature."""
        geometry = self.geometry
        model = clone(self.model)
        model.pi_ = now.pi.reshape(*geometry.grid, geometry.groups, -1) if geometry.groups > 1 else now.pi
        model.log_prior_, model.geometry_ = now.log_prior, geometry
        model.inverse_temperature_, model.location_prior_ = now.beta, model.location_prior
        if self.bags is not None:
            model.n_features_in_ = self.bags.shape[1]
        return model

    def _frame(self, model: Any, beta: float) -> Frame:
        cover = painting.coverage(model)
        cover = (255 * (COVERED * cover / cover.mean()).clip(max=1)).astype(np.uint8)
        places, probabilities = _windows(model, self.bags)
        return Frame(self.n_seen, beta, self.painter.record(painting.plane(model)), cover, places, probabilities)

    def pictures(self, size: int = 480, most: int = 150, beside: Any = None) -> "Reel":
        """Return the pictures of the film; each is drawn when it is accessed.

        Parameters
        ----------
        size : int, default=480
            Approximate number of pixels along the longer side of the grid.
        most : int, default=150
            Largest number of pictures, if the film selects them.
        beside : ndarray of shape (height, width, 3), default=None
            A picture to the left of the grid, uint8.

        Returns
        -------
        pictures : Reel
            A sequence of ndarray of shape (height, width, 3).
        """
        if not self.frames:
            raise ValueError(
                f"the film has no frames after {self.n_seen} iterations; expected it to be the callback of a fit; "
                "use fit(X, callback=film), and a smaller every."
            )
        shifts = drifts([self.painter.small(frame) for frame in self.frames]) + painting.seam(self.frames[-1].cover)
        chosen = range(len(self.frames)) if self.every else paced([frame.picture for frame in self.frames], most)
        grid, window = (painting.as_two_axes(shape) for shape in (self.geometry.grid, self.geometry.window))
        stage = Stage(grid, window, size, beside)
        paint = self.painter.ready(self.frames, shifts, stage)
        return Reel(chosen, lambda i: stage.draw(self.frames[i], shifts[i], paint(i)))

    def write(
        self, path: str | Path, fps: float = 12.0, size: int = 480, seconds: float = 12.0, beside: Any = None
    ) -> int:
        """Write the film; a file is written whole or not at all.

        Parameters
        ----------
        path : path-like
            File to write: .gif, .mp4 or .webm.
        fps : float, default=12.0
            Pictures per second.
        size : int, default=480
            Approximate number of pixels along the longer side of the grid.
        seconds : float, default=12.0
            Length of the film, if it selects its pictures; the last one is shown two seconds longer.
        beside : ndarray of shape (height, width, 3), default=None
            A picture to the left of the grid, uint8.

        Returns
        -------
        n_pictures : int
            Number of pictures.
        """
        encode.check(Path(path))
        pictures = self.pictures(size, max(2, round(fps * seconds)), beside)
        encode.write(Path(path), pictures, fps)
        return len(pictures)


class Reel(Sequence[NDArray[np.uint8]]):
    """The pictures of a film, drawn when they are accessed.

    Parameters
    ----------
    frames : sequence of int
        Indices of frames.
    draw : callable
        Returns the picture of a frame by its index.
    """

    def __init__(self, frames: Sequence[int], draw: Callable[[int], NDArray[np.uint8]]):
        self.frames, self.draw = frames, draw

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Reel(self.frames[index], self.draw)
        return self.draw(self.frames[index])


def watchable(model: Any, X: Any) -> Any:
    """Return a copy of a model that anneals on its full grid from the start, so that its film has no cuts.

    By default a model finds its layout on a small grid, as the best of several candidates, which makes no film.

    Parameters
    ----------
    model : estimator
        The model. If its `anneal` is a schedule or None, the copy has the same parameters.
    X : array-like or sparse matrix of shape (n_bags, n_columns)
        Counts, as for `fit`.

    Returns
    -------
    model : estimator
        The copy, not fitted.
    """
    if not isinstance(model.anneal, str):
        return clone(model)
    check_parameters(model)
    geometry = model._geometry()
    table = readers.read(clone(model), X, is_fitting=True)
    n_features = validation.n_features_of(table, geometry)
    weights = np.ones(table.shape[0], table.dtype)
    annealing = initialization.automatic_annealing(table, weights, n_features, model.max_iter)
    rate = max(RATE, (annealing.end / annealing.start) ** (1 / max(1, model.max_iter // 2)))
    return clone(model).set_params(anneal=(annealing.start, rate, annealing.end), n_init=1)


def drifts(maps: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Compute the shifts that align each frame with the next one, and so with the last.

    A layout may drift over the torus while it forms, because the likelihood does not depend on its position.

    Parameters
    ----------
    maps : list of ndarray of shape (n_rows, n_columns, n_channels)
        Frames.

    Returns
    -------
    shifts : ndarray of shape (n_frames, 2)
        Shift of each frame.
    """
    shifts = np.zeros((len(maps), 2), np.int64)
    later = _wave(maps[-1])
    for i in range(len(maps) - 2, -1, -1):
        now = _wave(maps[i])
        match = np.fft.irfft2((later * now.conj()).sum(axis=2), maps[i].shape[:2], axes=(0, 1))
        step = np.array(np.unravel_index(match.argmax(), match.shape))
        step = torus.displacement((0, 0), step, match.shape).astype(np.int64)
        # A layout moves by a cell or two from frame to frame; a larger shift means another layout, or none yet.
        shifts[i] = shifts[i + 1] + (step if np.abs(step).max() <= NEAR else 0)
        later = now
    return shifts


def paced(pictures: list[NDArray[Any]], most: int) -> list[int]:
    """Select at most `most` frames with about equal changes between them; the last is one of them."""
    if len(pictures) <= most:
        return list(range(len(pictures)))
    steps = [float(np.abs(a.astype(np.float32) - b).mean()) for a, b in pairwise(pictures)]
    pace = np.array(steps) / (np.mean(steps) or 1.0) + PASSING
    times = np.concatenate([[0], np.cumsum(pace)])
    return np.unique(np.searchsorted(times, np.linspace(0, times[-1], most)).clip(max=len(pictures) - 1)).tolist()


def _wave(planes: NDArray[Any]) -> NDArray[Any]:
    values = planes.astype(np.float32)
    return np.fft.rfft2(values - values.mean(axis=(0, 1)), axes=(0, 1))


def _windows(model: Any, bags: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the most likely windows of some bags, and their posterior in and next to these."""
    if bags is None:
        return np.zeros((0, 2), np.int64), np.zeros(0)
    grid = painting.plane(model).shape[:2]
    q = np.concatenate([part for part, _ in model.iter_posteriors(bags)]).reshape(-1, *grid)
    near = torus.window_sum(np.roll(q, (1, 1), (1, 2)), [min(3, n) for n in grid]).reshape(len(q), -1)
    best = near.argmax(axis=1)
    places = np.stack(np.unravel_index(best, grid), axis=-1)
    return places, near[np.arange(len(q)), best].clip(0, 1)
