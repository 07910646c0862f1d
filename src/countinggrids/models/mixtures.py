"""Mixtures without a grid: windows of one cell."""

from math import prod
from typing import ClassVar

from numpy.typing import ArrayLike

from countinggrids.core.geometry import Geometry, as_shape
from countinggrids.data.constraints import Constraints, Integer
from countinggrids.models.base import Anneal, GridModel, Lengths
from countinggrids.models.fitted import Seed
from countinggrids.models.options import shared_options


@shared_options
class MixtureOfUnigrams(GridModel):
    """Mixture of unigrams: a counting grid whose window is one cell.

    Parameters
    ----------
    n_components : int, default=16
        Number of components.
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> X = np.random.default_rng(0).poisson(2, (30, 12))
    >>> cg.MixtureOfUnigrams(3, random_state=0).fit(X).pi_.shape
    (3, 12)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **GridModel._parameter_constraints,
        "n_components": [Integer(at_least=1)],
    }

    def __init__(
        self,
        n_components: int = 16,
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
        self.n_components = n_components

    def _geometry(self) -> Geometry:
        grid = as_shape(self.n_components, "n_components", 1)
        return Geometry(grid, (1,), (1,), (1,))


@shared_options
class SpatialBagOfWords(GridModel):
    """Spatial bag of words: a mixture whose components have a distribution for each section.

    Parameters
    ----------
    n_components : int, default=16
        Number of components.
    sections : int or tuple of int, default=(2, 2)
        Sections that bags are cut into along each axis; `pi_` is (components, sections, features).
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> X = np.random.default_rng(0).poisson(2, (30, 12))
    >>> cg.SpatialBagOfWords(3, sections=(2, 2), random_state=0).fit(X).pi_.shape
    (3, 4, 3)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **GridModel._parameter_constraints,
        "n_components": [Integer(at_least=1)],
    }

    def __init__(
        self,
        n_components: int = 16,
        sections: Lengths = (2, 2),
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
        self.n_components = n_components
        self.sections = sections

    def _geometry(self) -> Geometry:
        grid = as_shape(self.n_components, "n_components", 1)
        return Geometry(grid, (1,), (1,), (1,), groups=prod(as_shape(self.sections, "sections")))
