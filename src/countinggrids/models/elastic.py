"""The elastic counting grid: sections of a bag may slip."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.core import elastic, sampling
from countinggrids.core.elastic import ElasticGeometry
from countinggrids.core.geometry import Geometry, as_slack
from countinggrids.models.base import Anneal, GridModel, Lengths
from countinggrids.models.fitted import Array, Seed
from countinggrids.models.options import shared_options


@shared_options
class ElasticGrid(GridModel):
    """Elastic counting grid: a tessellated grid whose sections may slip from their places in the window.

    Given the window of a bag, every section moves by itself, by an offset with a learned probability. Slack 0 is
    `CountingGrid`; slack of the whole torus locates sections independently of each other.

    Parameters
    ----------
    grid : tuple of int, default=(32, 32)
        Cells along each axis of the torus; any number of axes.
    window : int or tuple of int, default=(8, 8)
        Cells along each axis of the window that explains a bag; an int stands for all axes.
    sections : int or tuple of int, default=(2, 2)
        Sections that windows and bags are cut into along each axis.
    paint : int or tuple of int, default=None
        Finer sections that are added to the grid in the M step; they slip with the section that they lie in. The
        columns of X are cut into these. None takes `sections`.
    slack : int or tuple of int, default=1
        Cells along each axis, in both directions, by which a section may slip; an int stands for all axes. An iteration
        takes at most (number of offsets + 1) times that of `CountingGrid`, where slack 1 has 9 offsets and 2 has 25.
    {options}
    slip_ : ndarray of shape (n_sections, *offsets)
        Probability of each offset by which a section slips; the middle is no slip, and each section sums to one.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> X = np.random.default_rng(0).poisson(2, (30, 12))
    >>> model = cg.ElasticGrid(grid=(6, 6), window=(4, 4), sections=(2, 2), slack=1, random_state=0).fit(X)
    >>> model.pi_.shape, model.slip_.shape
    ((6, 6, 3), (4, 3, 3))
    """

    _geometry_type: ClassVar[type[Geometry]] = ElasticGeometry

    def __init__(
        self,
        grid: Lengths = (32, 32),
        window: Lengths = (8, 8),
        sections: Lengths | None = (2, 2),
        paint: Lengths | None = None,
        slack: Lengths = 1,
        *,
        location_prior: str = "smoothed",
        eta: str | float | ArrayLike = "auto",
        anneal: Anneal = "auto",
        init: str | ArrayLike = "auto",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int = 1,
        batch_size: int | None = None,
        sparse_output: bool = False,
        dtype: str = "float32",
        device: str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        super().__init__(
            location_prior=location_prior,
            eta=eta,
            anneal=anneal,
            init=init,
            max_iter=max_iter,
            tol=tol,
            n_init=n_init,
            batch_size=batch_size,
            sparse_output=sparse_output,
            dtype=dtype,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.grid = grid
        self.window = window
        self.sections = sections
        self.paint = paint
        self.slack = slack

    @property
    def slip_(self) -> Array:
        """Probability of each offset by which a section slips."""
        return np.exp(self._extra)

    def section_posteriors(self, X: Any) -> Array:
        """Return the posterior over the location of every matched section, which may have slipped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        q : ndarray of shape (n_bags, n_matched_sections, n_cells)
            Sums to one over cells.
        """
        check_is_fitted(self)
        if self._fitted_geometry().is_rigid:
            return super().section_posteriors(X)
        return np.concatenate([elastic.section_posteriors(*block) for block in self._iter_blocks(X)])

    def sample(
        self, n_bags: int = 1, n_tokens: int = 100, random_state: Seed = None
    ) -> tuple[sp.csr_array, NDArray[np.int64]]:
        """Draw bags from the model, with a slip for each of their sections.

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
            Window of each bag, as a flat index.
        """
        check_is_fitted(self)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        slips = sampling.draw_slips(self.slip_, self._fitted_geometry(), n_bags, rng)
        return sampling.draw(self.planes(), self.geometry_, n_bags, n_tokens, rng, slips)

    def _geometry(self) -> ElasticGeometry:
        rigid = Geometry.of(self.grid, self.window, self.sections, self.paint)
        return ElasticGeometry.with_slack(rigid, as_slack(self.slack, len(rigid.grid)))

    def _fitted_geometry(self) -> Any:
        return self.geometry_
