"""The counting grid, tessellated or not."""

from numpy.typing import ArrayLike

from countinggrids.core.geometry import Geometry
from countinggrids.models.base import Anneal, GridModel, Lengths
from countinggrids.models.fitted import Seed
from countinggrids.models.options import shared_options


@shared_options
class CountingGrid(GridModel):
    """Counting grid: bags of features laid out on a torus, so that nearby windows explain similar bags.

    Parameters
    ----------
    grid : tuple of int, default=(32, 32)
        Cells along each axis of the torus; any number of axes.
    window : int or tuple of int, default=(8, 8)
        Cells along each axis of the window that explains a bag; an int stands for all axes.
    sections : int or tuple of int, default=None
        Sections that windows and bags are cut into along each axis (tessellated counting grid).
    paint : int or tuple of int, default=None
        Finer sections that are added to the grid in the M step, while `sections` are compared in the E step (hybrid).
        The columns of X are cut into these. None takes `sections`.
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

    def _geometry(self) -> Geometry:
        return Geometry.of(self.grid, self.window, self.sections, self.paint)
