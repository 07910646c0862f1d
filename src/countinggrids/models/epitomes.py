"""Epitomes: counting grids whose painted sections are single cells."""

from numpy.typing import ArrayLike

from countinggrids.core.geometry import Geometry
from countinggrids.models.base import Anneal, GridModel, Lengths
from countinggrids.models.fitted import Seed
from countinggrids.models.options import shared_options


@shared_options
class DiscreteEpitome(GridModel):
    """Discrete epitome: a counting grid whose every section is one cell.

    Parameters
    ----------
    grid : tuple of int, default=(32, 32)
        Cells along each axis of the torus.
    window : int or tuple of int, default=(8, 8)
        Size of the feature maps, and of the window; the columns of X are cut into this many sections.
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

    def _geometry(self) -> Geometry:
        return Geometry.of(self.grid, self.window, sections=self.window)


@shared_options
class HybridEpitome(GridModel):
    """Hybrid of counting grid and epitome: whole bags are matched, and added to the grid cell by cell.

    Parameters
    ----------
    grid : tuple of int, default=(32, 32)
        Cells along each axis of the torus.
    window : int or tuple of int, default=(8, 8)
        Size of the feature maps, and of the window; the columns of X are cut into this many sections.
    sections : int or tuple of int, default=None
        Sections compared in the E step, coarser than the window; None compares whole bags.
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

    def _geometry(self) -> Geometry:
        return Geometry.of(self.grid, self.window, self.sections, paint=self.window)
