"""Which E step belongs to which geometry.

A model whose E step is not that of `core.em` is a subclass of `Geometry`, and a module with the functions of `Steps`.
Backends, stepwise EM and predictions find the module here; the M step of pi and P is `em.m_step` for all.
"""

from typing import Any, Protocol

from countinggrids.core import componential, elastic, em
from countinggrids.core.arrays import Array
from countinggrids.core.componential import ComponentialGeometry
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Bags, Counts, Pool


class Steps(Protocol):
    """The functions in which models of the family differ; `core.em` is the first module that has them."""

    def windows_of(self, grid: Grid, geometry: Any, beta: float, pool: Pool) -> Any:
        """Compute, once for every E step, what bags are compared with."""

    def posterior(self, counts: Counts, windows: Any, pool: Pool) -> tuple[Array, Array]:
        """Compute the posterior over cells, (bags, cells), and the log-likelihood of some bags."""

    def e_step(self, bags: Bags, windows: Any, geometry: Any, pool: Pool) -> Statistics:
        """Compute the expected sufficient statistics of one chunk of bags."""

    def first_extra(self, geometry: Any) -> Array:
        """Return the first value of `Grid.extra`."""

    def extra_step(self, grid: Grid, extra: Array, geometry: Any) -> Array:
        """Re-estimate `Grid.extra` from the sum of `Statistics.extra`: its M step."""


STEPS: dict[type[Geometry], Steps] = {
    Geometry: em,
    elastic.ElasticGeometry: elastic,
    ComponentialGeometry: componential,
}


def of(geometry: Geometry) -> Steps:
    """Return the module with the steps of a geometry."""
    return STEPS[type(geometry)]
