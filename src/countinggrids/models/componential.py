"""The componential counting grid: every token of a bag in its own window."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids import backends
from countinggrids.core import componential, em, sampling
from countinggrids.core.componential import ComponentialGeometry
from countinggrids.core.geometry import Geometry
from countinggrids.data import validation
from countinggrids.data.constraints import Choice, Constraints, Integer, Real
from countinggrids.kernels.threads import default, one_blas_thread
from countinggrids.models.base import Anneal, GridModel, Lengths
from countinggrids.models.fitted import Array, Seed, lazily
from countinggrids.training import completion, plans
from countinggrids.training.admixing import AdmixtureRestart

FIXED = ("location_prior", "anneal", "batch_size")


class ComponentialGrid(GridModel):
    """Componential counting grid: a topic model on a torus, in which every token of a bag has its own window.

    A bag is a mixture of windows, so it may lie in several places of the map. With a window of one cell it is latent
    Dirichlet allocation with point estimates.

    Parameters
    ----------
    grid : tuple of int, default=(48, 48)
        Cells along each axis of the torus; any number of axes.
    window : int or tuple of int, default=(2, 2)
        Cells along each axis of the window that explains a token; an int stands for all axes.
    sections : int or tuple of int, default=None
        Sections that windows and bags are cut into along each axis.
    alpha : "auto" or float, default="auto"
        Pseudocounts of a bag in total, spread evenly over all cells. "auto" chooses them by the words of bags that
        are kept out of learning; with fewer than 400 bags it is 2.
    eta : "auto", float or array-like of shape (n_features,), default="auto"
        Pseudocounts of every feature in every cell. "auto" takes them along the mean histogram of the bags, as many
        as held-out words ask for; with fewer than 400 bags 5% of the tokens of a cell.
    init : "auto" or array-like of the shape of `pi_`, default="auto"
        The first grid. "auto" starts near uniform on a small grid, which is upsampled. An array, for instance `pi_` of
        a `CountingGrid`, is your own first grid.
    max_iter : int, default=500
        Largest number of iterations on each grid; with batches, of batches.
    tol : float, default=1e-5
        Change of the objective per token at which EM has converged. It ends sooner if held-out words gain less than
        0.3% in ten iterations, or in a pass over all batches.
    n_init : int, default=1
        Number of restarts; the one with the best objective is kept.
    batch_size : "auto", int or None, default="auto"
        Bags that one iteration uses (stepwise EM); None uses all. "auto" uses a tenth of them, at most 1000, from 1000
        bags on. Bags that are not in memory should be in random order.
    sparse_output : bool, default=False
        Whether `transform` returns a sparse matrix. It applies to a fitted model too.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the parameters and of all products.
    device : str or None, default=None
        Where to compute. None is NumPy on the threads of this process; other names are devices of torch.
    random_state : int, RandomState or None, default=None
        Seed of the first grid, of the bags that are kept out, and of `sample`.
    verbose : int, default=0
        1 estimates time and memory, and shows progress on stderr: a bar on a terminal or in a notebook, elsewhere a
        line every two seconds. 2 writes a line after every iteration.

    Attributes
    ----------
    pi_ : ndarray of shape (*grid, n_features)
        Distribution over features in each cell; sums to one over the last axis.
    alpha_ : float
        Pseudocounts of a bag in total.
    log_prior_ : ndarray of shape (*grid,)
        Log prior of each window, which is uniform.
    geometry_ : ComponentialGeometry
        Grid, window and sections that were fitted.
    fingerprint_ : str or None
        Fingerprint of the features, if the model was fitted to a `Collection`.
    history_ : ndarray of shape (n_iter_,)
        Log-likelihood plus log priors of theta and pi, per token, at every iteration on the last grid.
    n_iter_ : int
        Number of iterations on the last grid.
    converged_ : bool
        Whether training ended before `max_iter`.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> X = np.random.default_rng(0).poisson(2, (30, 12))
    >>> model = cg.ComponentialGrid(grid=(6, 6), window=(2, 2), random_state=0).fit(X)
    >>> model.pi_.shape, model.transform(X).shape
    ((6, 6, 12), (30, 36))
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **{name: rule for name, rule in GridModel._parameter_constraints.items() if name not in FIXED},
        "alpha": [Choice("auto"), Real(at_least=0, at_most=validation.LARGEST_TOTAL)],
        "init": [Choice("auto", "uniform"), GridModel._parameter_constraints["init"][-1]],
        "batch_size": [None, Choice("auto"), Integer(at_least=1)],
    }
    _geometry_type = ComponentialGeometry
    _restart = AdmixtureRestart
    _plan = staticmethod(plans.admixed)
    location_prior: str = "uniform"
    anneal: Anneal = "auto"

    def __init__(
        self,
        grid: Lengths = (48, 48),
        window: Lengths = (2, 2),
        sections: Lengths | None = None,
        *,
        alpha: str | float = "auto",
        eta: str | float | ArrayLike = "auto",
        init: str | ArrayLike = "auto",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int = 1,
        batch_size: str | int | None = "auto",
        sparse_output: bool = False,
        dtype: str = "float32",
        device: str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.grid = grid
        self.window = window
        self.sections = sections
        self.alpha = alpha
        self.eta = eta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.batch_size = batch_size  # type: ignore[assignment]
        self.sparse_output = sparse_output
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _geometry(self) -> Geometry:
        return ComponentialGeometry.of(self.grid, self.window, self.sections)

    def _first_extra(self, geometry: Geometry) -> Array:
        return super()._first_extra(geometry) if isinstance(self.alpha, str) else np.array([float(self.alpha)])

    @property
    def alpha_(self) -> float:
        """Pseudocounts of a bag in total."""
        check_is_fitted(self)
        return float(self._extra[0])

    @lazily(None, "int64")
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the main window of each bag as a flat index: the one in which most of its tokens lie.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        cells : ndarray of shape (n_bags,)
            Flat indices.
        """
        found = (componential.main_cells(theta, self.geometry_) for theta, _ in self.iter_posteriors(X))
        return np.concatenate(list(found))

    def assign(self, X: Any) -> sp.csr_array:
        """Return the likeliest window of every token.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        cells : csr_array of shape (n_bags, n_sections * n_features)
            For every non-zero count, one more than the flat index of its window: zeros are not stored.
        """
        check_is_fitted(self)
        counts, _ = self._counts_of(X, self.geometry_)
        table, _ = backends.open_bags(self, counts, is_fitting=False)
        bags = sp.csr_array(sp.vstack([sp.csr_array(block) for block in table], format="csr"))
        bags.eliminate_zeros()
        h = componential.windows_of(self.planes(), self.geometry_, 1.0, default()).h
        cells, start = np.empty(bags.nnz, np.int64), 0
        for theta, _ in self.iter_posteriors(bags):
            for each in theta:
                part = slice(bags.indptr[start], bags.indptr[start + 1])
                cells[part] = componential.token_cells(each, h, bags.indices[part], self.geometry_)
                start += 1
        return sp.csr_array((cells + 1, bags.indices, bags.indptr), shape=bags.shape)

    @lazily(lambda model: model.geometry_.n_cells, None)
    def cell_weights(self, X: Any) -> Array:
        """Return the fraction of the tokens of each bag that lies in each cell.

        Every token is spread evenly over its window, so bags in overlapping windows have cells in common: a better
        representation for nearest neighbors and classifiers, best after a square root, than the windows of
        `transform`, which are alike only where they are the same.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        weights : ndarray of shape (n_bags, n_cells)
            Rows sum to one.
        """
        found = (componential.cell_weights(theta, self.geometry_) for theta, _ in self.iter_posteriors(X))
        return np.concatenate(list(found))

    def perplexity(self, X: Any) -> float:
        """Return the perplexity of held-out tokens by document completion.

        Every token of a bag is shown with probability one half, by random numbers that are always the same; the others
        are predicted by the weights that the shown ones give.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        perplexity : float
            The number of equally likely features that would be as hard to predict.
        """
        check_is_fitted(self)
        counts, _ = self._counts_of(X, self.geometry_)
        table, _ = backends.open_bags(self, counts, is_fitting=False)
        rng, log_p, n_tokens = np.random.RandomState(0), 0.0, 0.0
        with one_blas_thread():
            for block in table:
                parts = completion.split(block.astype(table.dtype), rng)
                found, n_hidden = completion.log_predictive(*parts, self.planes(), self.geometry_, default())
                log_p, n_tokens = log_p + found, n_tokens + n_hidden
        if not n_tokens:
            raise ValueError("X holds too few counts to hide some; wanted at least one bag with a few; check X")
        return float(np.exp(-log_p / n_tokens))

    @lazily(None, "float64")
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return a lower bound of log p(bag), without the multinomial coefficient.

        The weights of a bag are integrated out by variational Bayes, under a Dirichlet distribution with `alpha_`
        pseudocounts in total.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        bound : ndarray of shape (n_bags,)
            Lower bound for each bag.
        """
        blocks = self._iter_blocks(X)
        return np.concatenate([componential.lower_bounds(counts, windows, pool) for counts, windows, pool in blocks])

    def sample(
        self, n_bags: int = 1, n_tokens: int = 100, random_state: Seed = None
    ) -> tuple[sp.csr_array, NDArray[np.int64]]:
        """Draw bags from the model.

        Parameters
        ----------
        n_bags : int, default=1
            Number of bags.
        n_tokens : int, default=100
            Tokens of each bag, spread evenly over its sections.
        random_state : int, RandomState or None, default=None
            Random numbers; None takes those of the model.

        Returns
        -------
        X : csr_array of shape (n_bags, n_sections * n_features)
            Counts.
        cells : ndarray of shape (n_bags,)
            Main window of each bag, as a flat index.
        """
        check_is_fitted(self)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        return sampling.draw_mixtures(self.planes(), self.geometry_, n_bags, n_tokens, rng)

    def _keep(self, grid: em.Grid, geometry: Geometry) -> None:
        super()._keep(grid, geometry)
        self.location_prior_ = "uniform"
