"""The rows of the paper's table by name: each a choice of window and sections."""

from collections.abc import Sequence
from inspect import cleandoc
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from countinggrids.geometry import Geometry, as_shape
from countinggrids.model import GridModel

Lengths = int | Sequence[int]
Anneal = str | tuple[float, float, float] | None
Seed = int | np.random.RandomState | None

_OPTIONS = """location_prior : {"smoothed", "exact", "uniform"}
    How the prior over windows is learnt: usage summed over overlapping windows (Eq. pl2), usage as it is
    (Eq. pl1), or not at all.
eta : "auto", float or (features,)
    Pseudocounts of every feature in every cell (Eq. M1_full). "auto" takes them along the mean histogram of the
    bags: strong while the layout forms, then in total at most a fifth of the tokens that a cell receives.
anneal : "auto", None or (start, rate, end)
    Deterministic annealing: beta times the log-likelihood, beta rising from start by the factor rate in every
    iteration to end. "auto" starts where a grid without structure begins to form one, and ends at 1; where that
    saves work, it tries several layouts on a smaller grid of the same capacity and learns the best one on. None is
    plain EM. An end below 1 tempers bags whose features are far from independent draws: it then stays in force,
    so `transform`, `score_samples` and all that follow from them also see every count times end.
init : "uniform" or array of the shape of `pi_`
    The first grid: near uniform with its symmetry broken, or your own.
max_iter : int
    Iterations at the most on each grid, annealing included; an automatic annealing takes no more than three fifths
    of them.
tol : float
    Change of the objective per token at which learning ends.
n_init : int
    Restarts; the one with the best objective is kept.
dtype : {"float32", "float64"}
    Precision of the grid and of all products.
device : None, "cpu", "cuda", "cuda:1", "mps" or another device of torch
    Where to compute. None is NumPy, on the threads of this process: on a processor the fastest, above all for sparse
    counts. A name is torch on that device, with the extra `torch`; the bags go there dense, a block at a time. The
    first grid is the same everywhere, so that results differ by rounding only. It is not saved with the model.
random_state : int, RandomState or None
    Seed of the first grid. With NumPy the same seed gives the same bits on any number of threads.
verbose : int
    1 writes a line to stderr every two seconds, 2 at every iteration.

Attributes
----------
pi_ : (*grid, features)
    What each cell holds; sums to one over the last axis.
log_prior_ : (*grid,)
    Log of how likely each window is.
history_ : (iterations,)
    Log-likelihood plus log prior of the grid, per token, at every iteration.
n_iter_ : int
converged_ : bool
capacity : float
    How many windows fit side by side."""


def _document(row: type) -> type:
    """Fill the shared options into a row's docstring."""
    row.__doc__ = cleandoc(row.__doc__ or "").replace("{options}", _OPTIONS)
    return row


@_document
class CountingGrid(GridModel):
    """Lay bags of features out on a torus, so that nearby windows explain similar bags.

    Parameters
    ----------
    grid : tuple of int
        Cells along each axis of the torus; any number of axes.
    window : tuple of int
        Cells along each axis of the window that explains a bag. An integer stands for all axes.
    sections : tuple of int, optional
        Parts that a window and a bag are cut into along each axis (tessellated counting grid).
    paint : tuple of int, optional
        Finer parts that are laid down in the M step while `sections` are compared in the E step (hybrid). Bags then
        come cut into these. None takes `sections`.
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> X = np.random.default_rng(0).poisson(2, (30, 12))
    >>> model = cg.CountingGrid(grid=(6, 6), window=(2, 2), random_state=0).fit(X)
    >>> model.pi_.shape, model.locate(X).shape
    ((6, 6, 12), (30, 2))
    """

    def __init__(
        self,
        grid: Lengths = (32, 32),
        window: Lengths = (8, 8),
        sections: Lengths | None = None,
        paint: Lengths | None = None,
        *,
        location_prior: str = "smoothed",
        eta: str | float | ArrayLike = "auto",
        anneal: Anneal = "auto",
        init: str | ArrayLike = "uniform",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int = 1,
        dtype: str = "float32",
        device: str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.grid = grid
        self.window = window
        self.sections = sections
        self.paint = paint
        self._set_options(
            location_prior, eta, anneal, init, max_iter, tol, n_init, dtype, device, random_state, verbose
        )

    def _geometry(self) -> Geometry:
        return Geometry.of(self.grid, self.window, self.sections, self.paint)


@_document
class MixtureOfUnigrams(GridModel):
    """Mix plain histograms: a counting grid whose window is one cell.

    Parameters
    ----------
    n_components : int
        Histograms in the mixture.
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> X = np.random.default_rng(0).poisson(2, (30, 12))
    >>> cg.MixtureOfUnigrams(3, random_state=0).fit(X).pi_.shape
    (3, 12)
    """

    def __init__(
        self,
        n_components: int = 16,
        *,
        location_prior: str = "smoothed",
        eta: str | float | ArrayLike = "auto",
        anneal: Anneal = "auto",
        init: str | ArrayLike = "uniform",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int = 1,
        dtype: str = "float32",
        device: str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self._set_options(
            location_prior, eta, anneal, init, max_iter, tol, n_init, dtype, device, random_state, verbose
        )

    def _geometry(self) -> Geometry:
        grid = as_shape(self.n_components, "n_components", 1)
        return Geometry(grid, (1,), (1,), (1,))


@_document
class SpatialBagOfWords(GridModel):
    """Mix histograms that are kept apart by section: where things are counts, and nothing may move.

    Parameters
    ----------
    n_components : int
        Components of the mixture.
    sections : tuple of int
        Parts that a bag is cut into along each axis; `pi_` is (components, sections, features).
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> X = np.random.default_rng(0).poisson(2, (30, 12))
    >>> cg.SpatialBagOfWords(3, sections=(2, 2), random_state=0).fit(X).pi_.shape
    (3, 4, 3)
    """

    def __init__(
        self,
        n_components: int = 16,
        sections: Lengths = (2, 2),
        *,
        location_prior: str = "smoothed",
        eta: str | float | ArrayLike = "auto",
        anneal: Anneal = "auto",
        init: str | ArrayLike = "uniform",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int = 1,
        dtype: str = "float32",
        device: str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.sections = sections
        self._set_options(
            location_prior, eta, anneal, init, max_iter, tol, n_init, dtype, device, random_state, verbose
        )

    def _geometry(self) -> Geometry:
        grid = as_shape(self.n_components, "n_components", 1)
        return Geometry(grid, (1,), (1,), (1,), groups=prod(as_shape(self.sections, "sections")))


@_document
class DiscreteEpitome(GridModel):
    """Quilt feature maps cell by cell: a counting grid whose every section is one cell.

    Parameters
    ----------
    grid : tuple of int
        Cells along each axis of the torus.
    window : tuple of int
        Size of the feature maps, and of the window; bags come cut into this many sections.
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> maps = np.random.default_rng(0).integers(5, size=(20, 4, 4))
    >>> X = cg.bag(maps, sections=(4, 4), n_features=5)
    >>> cg.DiscreteEpitome(grid=(8, 8), window=(4, 4), random_state=0).fit(X).pi_.shape
    (8, 8, 5)
    """

    def __init__(
        self,
        grid: Lengths = (32, 32),
        window: Lengths = (8, 8),
        *,
        location_prior: str = "smoothed",
        eta: str | float | ArrayLike = "auto",
        anneal: Anneal = "auto",
        init: str | ArrayLike = "uniform",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int = 1,
        dtype: str = "float32",
        device: str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.grid = grid
        self.window = window
        self._set_options(
            location_prior, eta, anneal, init, max_iter, tol, n_init, dtype, device, random_state, verbose
        )

    def _geometry(self) -> Geometry:
        return Geometry.of(self.grid, self.window, sections=self.window)


@_document
class HybridEpitome(GridModel):
    """Match bags as a counting grid does, and paint them cell by cell as an epitome does.

    Parameters
    ----------
    grid : tuple of int
        Cells along each axis of the torus.
    window : tuple of int
        Size of the feature maps, and of the window; bags come cut into this many sections.
    sections : tuple of int, optional
        Parts compared in the E step, coarser than the window; None compares whole bags.
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> maps = np.random.default_rng(0).integers(5, size=(20, 4, 4))
    >>> X = cg.bag(maps, sections=(4, 4), n_features=5)
    >>> cg.HybridEpitome(grid=(8, 8), window=(4, 4), random_state=0).fit(X).pi_.shape
    (8, 8, 5)
    """

    def __init__(
        self,
        grid: Lengths = (32, 32),
        window: Lengths = (8, 8),
        sections: Lengths | None = None,
        *,
        location_prior: str = "smoothed",
        eta: str | float | ArrayLike = "auto",
        anneal: Anneal = "auto",
        init: str | ArrayLike = "uniform",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int = 1,
        dtype: str = "float32",
        device: str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.grid = grid
        self.window = window
        self.sections = sections
        self._set_options(
            location_prior, eta, anneal, init, max_iter, tol, n_init, dtype, device, random_state, verbose
        )

    def _geometry(self) -> Geometry:
        return Geometry.of(self.grid, self.window, self.sections, paint=self.window)
