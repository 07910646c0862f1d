"""Place recognition that chooses between bags, grid posteriors and their sum, on the reference walk alone."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import whole_or_nothing
from countinggrids.core.geometry import Shape, as_shape, suggest
from countinggrids.data.validation import check_bags
from countinggrids.features.saving import Saveable
from countinggrids.meta import reference
from countinggrids.meta.candidates import Tessellations, divides
from countinggrids.meta.emissions import standardized
from countinggrids.meta.neighbors import GridNeighbors
from countinggrids.meta.nested import innermost, set_seeds
from countinggrids.meta.options import check_choice, is_number
from countinggrids.meta.root_bags import RootBags
from countinggrids.meta.scaling import BagScaler
from countinggrids.meta.tracking import sequences
from countinggrids.meta.walk import make_walk
from countinggrids.models import CountingGrid

Array = NDArray[Any]
TOKENS, POWER = 100, 0.7
"""Tokens to which bags are scaled for a grid, and power of their counts: image bags are overconfident."""
TEMPERS = (0.1, 0.3)
WEIGHTS = (0.3, 1.0)
"""Powers of the likelihoods in posteriors, and weights of the grid in the sum, to choose from."""
N_ERRORS = 2.0
"""Standard errors by which another choice must be better than bags."""
N_BLOCKS = 10


class Choice(NamedTuple):
    """A way to compare frames.

    Attributes
    ----------
    name : str
        "bags", "grid" or "sum".
    grid : int
        Number of the grid among those given.
    temper : float
        Power of the likelihoods in posteriors.
    weight : float
        Weight of the grid in the sum.
    """

    name: str
    grid: int = 0
    temper: float = 1.0
    weight: float = 1.0


class PlaceRecognizer(Saveable, BaseEstimator):  # type: ignore[misc]
    """Compare query frames with those of a reference walk by bags, by grid posteriors, or by their sum.

    The choice is made on the reference walk alone. Every second frame is compared with the others, as if it were seen
    from a few frames away, with grids fitted to the others, and filtered along the walk. Bags are kept unless
    something else has a lower log loss by two standard errors. It is a matcher for `PlaceTracker`.

    Parameters
    ----------
    use : {"auto", "bags", "grid", "sum"}, default="auto"
        What is compared; "auto" chooses.
    grids : estimator or list of estimators, default=None
        Grids to choose from, with `sections` that divide those of the bags. None is a `CountingGrid` whose size suits
        the number of frames.
    sections : int or tuple of int, default=1
        Sections of the bags. Coarser ones are tried for the comparison of bags; the finer ones are compared too.
    tolerance : float, default=2
        Frames up to which a frame counts as recognized.
    random_state : int, RandomState or None, default=None
        Seed of the grids.

    Attributes
    ----------
    choice_ : Choice
        What is compared.
    sections_ : tuple of int
        Coarsest sections at which bags are compared. The similarity is the mean over these and all finer ones.
    losses_ : dict
        Mean log loss on the reference walk of every choice that was tried.
    bags_ : RootBags
        The bags of the reference walk at `sections_` and all finer ones.
    neighbors_ : GridNeighbors or None
        The grid of the reference walk, also where bags are compared: it gives the map. None with use="bags".

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> along = np.linspace(0, 1, 30)[:, None]
    >>> walk = np.round(100 * np.hstack([1 - along, along, np.sin(7 * along) + 1]))
    >>> recognizer = cg.PlaceRecognizer(use="bags").fit(walk)
    >>> recognizer.similarity(walk[10:12]).argmax(axis=1).tolist()
    [10, 11]
    """

    def __init__(
        self,
        use: str = "auto",
        *,
        grids: Any = None,
        sections: int | Sequence[int] = 1,
        tolerance: float = 2,
        random_state: Any = None,
    ):
        self.use = use
        self.grids = grids
        self.sections = sections
        self.tolerance = tolerance
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: object = None, lengths: Sequence[int] | None = None) -> Self:
        """Choose how frames are compared, and keep the reference walk in that form.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags of the reference walk in temporal order.
        y : None
            Ignored.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive walks; None takes all frames as one walk.

        Returns
        -------
        self : object
            The fitted recognizer.
        """
        X = check_bags(self, X, is_fitting=True)
        self._check_options(X.shape[0])
        sizes = [part.stop - part.start for part in sequences(X.shape[0], lengths)]
        self.finest_ = as_shape(self.sections, "sections")
        tables = Tessellations(X, self.finest_)
        self.losses_: dict[str, float] = {}
        self.sections_ = self._choose_sections(tables, sizes)
        self.bags_ = RootBags().fit(self._pyramid(tables))
        grids = [] if self.use == "bags" else self._new_grids(X.shape[0], tables.n_features)
        self.choice_ = self._choose(tables, grids, sizes)
        self.neighbors_ = None if not grids else self._fitted_neighbors(grids[self.choice_.grid], self.choice_, X)
        return self

    def similarity(self, X: Any) -> Array:
        """Return the similarity of each query with each reference frame.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags of the queries.

        Returns
        -------
        similarity : ndarray of shape (n_frames, n_references)
            Cosines of square-rooted bags, log-likelihoods on the grid, or their standardized sum.
        """
        check_is_fitted(self)
        X = check_bags(self, X, is_fitting=False)
        if self.choice_.name == "bags":
            return self._bag_similarity(X)
        assert self.neighbors_ is not None
        by_grid = self.neighbors_.similarity(self._grid_bags(X))
        return by_grid if self.choice_.name == "grid" else summed(self._bag_similarity(X), by_grid, self.choice_.weight)

    def log_likelihood(self, X: Any) -> Array:
        """Return log p(bag) of each frame under the grid of the reference walk.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags.

        Returns
        -------
        log_likelihood : ndarray of shape (n_frames,)
            Low for frames that are like no window of the grid.
        """
        return np.asarray(self._grid().score_samples(self._grid_bags(check_bags(self, X, is_fitting=False))))

    def locate(self, X: Any) -> Array:
        """Return the coordinates of each frame on the grid of the reference walk.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags.

        Returns
        -------
        cells : ndarray of shape (n_frames, n_axes)
            Coordinates of the most likely cells.
        """
        return np.asarray(self._grid().locate(self._grid_bags(check_bags(self, X, is_fitting=False))))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _restored(self) -> None:
        if type(self.choice_) is not Choice or self.choice_.name not in ("bags", "grid", "sum"):
            raise ValueError(f"choice_ is {self.choice_!r:.80}")
        if self.choice_.name != "bags" and self.neighbors_ is None:
            raise ValueError("neighbors_ is None")
        if self.sections_ not in coarser(as_shape(self.finest_, "sections")):
            raise ValueError(f"sections_ is {self.sections_!r:.80}")

    def _grid(self) -> Any:
        check_is_fitted(self)
        if self.neighbors_ is None:
            raise ValueError("use='bags' fits no grid; use='auto' fits one for the map.")
        return innermost(self.neighbors_.model_)

    def _bag_similarity(self, X: Any) -> Array:
        return self.bags_.similarity(self._pyramid(Tessellations(X, self.finest_)))

    def _pyramid(self, tables: Tessellations) -> Any:
        """Return bags at the chosen sections and at all finer ones, whose mean cosine is that of the whole rows."""
        finer = [tables.at(shape) for shape in coarser(self.finest_) if divides(self.sections_, shape)]
        return sp.hstack(finer, format="csr") if sp.issparse(finer[0]) else np.hstack(finer)

    def _grid_bags(self, X: Any) -> Any:
        sections = sections_of(self._grid(), self.finest_)
        return BagScaler(TOKENS, POWER).fit_transform(Tessellations(X, self.finest_).at(sections))

    def _fitted_neighbors(self, grid: Any, choice: Choice, X: Any) -> GridNeighbors:
        X = BagScaler(TOKENS, POWER).fit_transform(Tessellations(X, self.finest_).at(sections_of(grid, self.finest_)))
        return GridNeighbors(grid, metric="likelihood", gamma=choice.temper).fit(X, np.arange(X.shape[0]))

    def _choose_sections(self, tables: Tessellations, lengths: list[int]) -> Shape:
        """Choose the coarsest sections at which bags are compared, on the walk itself.

        They are the finest ones whose loss is at most one standard error above the lowest loss.
        """
        gaps = reference.usable_gaps(self.tolerance, lengths)
        shapes = coarser(self.finest_)
        if len(shapes) == 1 or not gaps:
            return self.finest_
        runs, walk = reference.select_runs(lengths), make_walk(lengths, "forward", 2, 0.01)
        found = {}
        for shape in shapes:
            bags = tables.at(shape)
            similarity = RootBags().fit(bags).similarity(bags[runs.queries])
            losses = reference.gap_losses(
                similarity, runs.distance, runs.parts, walk, reference.GAMMAS, gaps, self.tolerance
            )
            found[shape] = losses[losses.mean(axis=1).argmin()]
            self.losses_[f"bags {'x'.join(map(str, shape))}"] = float(found[shape].mean())
        return finest_of_the_best(found)

    def _choose(self, tables: Tessellations, grids: list[Any], lengths: list[int]) -> Choice:
        """Choose what is compared, with every second frame as a query and grids fitted to the others."""
        halves = reference.Halves(lengths, self.tolerance)
        if self.use == "bags" or not grids or not halves.gaps:
            return Choice("bags" if self.use == "auto" else self.use, temper=TEMPERS[-1], weight=WEIGHTS[0])
        bags = self._pyramid(tables)
        by_bags = RootBags().fit(bags[halves.kept]).similarity(bags[halves.queries])
        losses = {Choice("bags", temper=TEMPERS[-1]): halves.losses(by_bags)}
        for number, grid in enumerate(grids):
            X = BagScaler(TOKENS, POWER).fit_transform(tables.at(sections_of(grid, self.finest_)))
            fitted = clone(grid).fit(X[halves.kept])
            for temper in TEMPERS:
                half = GridNeighbors(fitted, metric="likelihood", gamma=temper)
                by_grid = half.fit(X[halves.kept], np.arange(len(halves.kept))).similarity(X[halves.queries])
                losses[Choice("grid", number, temper)] = halves.losses(by_grid)
                for weight in WEIGHTS:
                    losses[Choice("sum", number, temper, weight)] = halves.losses(summed(by_bags, by_grid, weight))
        self.losses_ |= {f"{c.name} {c.grid} {c.temper:g} {c.weight:g}": float(v.mean()) for c, v in losses.items()}
        if self.use != "auto":
            return min((c for c in losses if c.name == self.use), key=lambda c: losses[c].mean())
        return significantly_better(losses)

    def _new_grids(self, n_frames: int, n_features: int) -> list[Any]:
        """Return the grids to choose from, seeded, not fitted."""
        given = self.grids if isinstance(self.grids, list | tuple) else [self.grids]
        made = []
        for grid in given:
            if grid is None:
                sections = self.sections_ if max(self.sections_) > 1 else None
                shapes = suggest(n_frames, n_features, sections or (1, 1), None)
                grid = CountingGrid(*shapes, sections)
            grid = clone(grid)
            if isinstance(self.random_state, int | np.integer):
                set_seeds(grid, int(self.random_state))
            made.append(grid)
        return made

    def _check_options(self, n_frames: int) -> None:
        check_choice(self, "use", ("auto", "bags", "grid", "sum"))
        if not is_number(self.tolerance) or not 0 <= self.tolerance < np.inf:
            raise ValueError(f"tolerance={self.tolerance!r} must be a number of frames of at least 0; use tolerance=2.")
        if n_frames < 2:
            raise ValueError(f"X has n_samples={n_frames} frame but a reference walk must have at least 2; add frames.")


def summed(by_bags: Array, by_grid: Array, weight: float) -> Array:
    """Return the sum of similarities, each standardized for every query."""
    return standardized(by_bags) + weight * standardized(by_grid)


def significantly_better(losses: dict[Choice, Array]) -> Choice:
    """Return the best choice that beats the first one by two standard errors of blocks of frames, or the first."""
    first = next(iter(losses))
    best, found = losses[first].mean(), first
    for choice, values in losses.items():
        gain = losses[first] - values
        if gain.mean() > N_ERRORS * standard_error(gain) and values.mean() < best:
            best, found = values.mean(), choice
    return found


def finest_of_the_best(losses: dict[Shape, Array]) -> Shape:
    """Return the sections with most parts among those within one standard error of the lowest loss."""
    best = min(losses, key=lambda shape: losses[shape].mean())
    extra = {shape: values - losses[best] for shape, values in losses.items()}
    close = [shape for shape, values in extra.items() if shape == best or values.mean() <= standard_error(values)]
    return max(close, key=lambda shape: (np.prod(shape), -losses[shape].mean()))


def standard_error(values: Array) -> float:
    """Return the standard error of a mean over frames, from means of blocks: frames in a row are much alike."""
    blocks = [block.mean() for block in np.array_split(values, min(N_BLOCKS, len(values)))]
    return float(np.std(blocks, ddof=1) / np.sqrt(len(blocks))) if len(blocks) > 1 else np.inf


def coarser(sections: Shape) -> list[Shape]:
    """Return all sections that divide given ones, the finest first."""
    return list(product(*([d for d in range(n, 0, -1) if n % d == 0] for n in sections)))


def sections_of(grid: Any, finest: Shape) -> Shape:
    """Return the sections of the bags that a grid takes."""
    painted = grid._geometry().painted
    return tuple(painted) if len(painted) == len(finest) else (1,) * len(finest)
