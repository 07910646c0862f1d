"""How to learn: the way of beta, the pseudocounts, and when to stop.

Plain EM ends in a jumble of tiles. Deterministic annealing starts where every bag lies everywhere (beta near zero) and
lets the layout form from its largest features down. The pseudocounts follow: strong while the layout forms, because
a strong pull to the mean lets only the largest features grow, and weaker once it stands.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from countinggrids.arrays import Array

RATE, QUICK_RATE = 1.01, 1.05
"""Growth of beta in one iteration: while the layout forms, and after that."""
BATCH_RATE, BATCH_QUICK_RATE = 1.02, 1.07
"""The same from batches, which move a grid more than all bags together do: while it forms, and on the full grid."""
FORMED = 3.0
"""Where the layout has formed, in critical betas."""
CRITICAL_BAGS = 10_000
"""How many bags, about, tell where annealing starts."""
REFINING = 2.0
"""Where beta starts on the full grid once the layout is known, in critical betas."""
FORMING_SHARE = 0.3
"""Pseudocounts while the layout forms, as a share of the tokens a cell receives."""
SETTLED_SHARE = 0.2
"""The same at the most once the layout stands."""
SETTLED_TOTAL = 4.0
"""And in total at the most this many times the square root of the number of features in real use."""


class Cooling(NamedTuple):
    """The way of beta: from start, times rate in every iteration, to end; from `formed` on times QUICK_RATE."""

    start: float
    rate: float
    end: float
    formed: float = np.inf

    def betas(self) -> list[float]:
        """List beta for every iteration before the end is reached."""
        betas = []
        beta = self.start
        while beta < self.end:
            betas.append(beta)
            beta *= self.rate if beta < self.formed else max(self.rate, QUICK_RATE)
        return betas

    def within(self, n_iterations: int) -> "Cooling":
        """Cool faster where need be, so that the end is reached in so many iterations."""
        if len(self.betas()) <= n_iterations:
            return self
        return self._replace(rate=(self.end / self.start) ** (1 / max(1, n_iterations)), formed=np.inf)


@dataclass(frozen=True)
class Eta:
    """The pseudocounts of Eq. M1_full, the same in every cell.

    Parameters
    ----------
    fixed : given by the user, a number or (features,); None takes them along the mean histogram of the bags
    share : their total, as a share of the tokens a cell receives
    at_most : their total at the most, in units of sqrt(effective features)
    """

    fixed: Array | float | None
    share: float = 0.0
    at_most: float = np.inf

    def of(self, totals: Array, n_cells: int) -> Array:
        """Give (features,) pseudocounts from the features' totals over all bags."""
        if self.fixed is not None:
            return np.broadcast_to(np.asarray(self.fixed, dtype=np.float64), totals.shape)
        tokens = float(totals.sum()) / n_cells
        seen = totals[totals > 0] / totals.sum()
        effective = float(np.exp(-seen @ np.log(seen)))
        return smoothed(totals) * tokens * min(self.share, self.at_most * effective**0.5 / tokens)


def smoothed(totals: Array) -> Array:
    """Give the histogram of all bags, with something for features that none of them has (Witten and Bell).

    Every feature that was seen counts once more, and these counts are spread over all features: the more different
    features there were, the likelier is one that was not.
    """
    n_seen = np.count_nonzero(totals)
    return (totals + n_seen / totals.size) / (totals.sum() + n_seen)


@dataclass(frozen=True)
class Recipe:
    """How to learn.

    Parameters
    ----------
    cooling : the way of beta; None stays at 1
    forming, settled : pseudocounts while the layout forms, and once it stands
    location_prior : "smoothed", "exact" or "uniform"
    max_iter : iterations at the most
    tol : change of the objective per token below which a phase ends
    has_batches : whether iterations look at batches while beta grows
    """

    cooling: Cooling | None
    forming: Eta
    settled: Eta
    location_prior: str
    max_iter: int
    tol: float
    has_batches: bool = False

    def scouting(self) -> "Recipe":
        """Stop where the layout stands."""
        return replace(self, settled=self.forming, tol=10 * self.tol)

    def refining(self) -> "Recipe":
        """Start where the layout stands already."""
        assert self.cooling is not None
        start = min(self.cooling.end, REFINING * self.cooling.start)
        rate = BATCH_QUICK_RATE if self.has_batches else QUICK_RATE
        return replace(self, cooling=Cooling(start, rate, self.cooling.end).within(self.max_iter // 2))

    def phases(self) -> list[tuple[float, Eta, float]]:
        """Give (beta, eta, tolerance) of every phase; a phase ends when the objective changes less than that.

        The layout settles before the pseudocounts are weakened. Not so after batches: there it takes a third of the
        time and ends no better.
        """
        if self.cooling is None:
            return [(1.0, self.settled, self.tol)]
        phases = [(beta, self.forming, np.inf) for beta in self.cooling.betas()]
        if self.forming != self.settled and not self.has_batches:
            phases.append((self.cooling.end, self.forming, 10 * self.tol))
        return [*phases, (self.cooling.end, self.settled, self.tol)]


def critical_beta(counts: Any, weights: Array) -> float:
    """Find the inverse temperature at which a grid without structure begins to form one.

    Around the grid that holds the mean histogram everywhere, a small wave grows by beta times the largest eigenvalue
    of C' C / n (n the features' totals) off the mean: the first inertia of correspondence analysis, in tokens.
    A few steps of power iteration on some thousand bags are plenty.
    """
    weights = weights.astype(np.float64)
    totals = np.asarray(counts.T @ weights, dtype=np.float64)
    scale = np.divide(1, np.sqrt(totals), out=np.zeros_like(totals), where=totals > 0)
    mean = np.sqrt(totals / totals.sum())
    vector = np.random.default_rng(0).standard_normal(totals.size)
    eigenvalue = 0.0
    for _ in range(30):
        vector -= mean * (mean @ vector)
        vector /= np.linalg.norm(vector) or 1.0
        image = scale * (counts.T @ (weights * (counts @ (scale * vector))))
        eigenvalue, vector = float(vector @ image), np.asarray(image, dtype=np.float64)
    return 1 / eigenvalue if eigenvalue > 0 else np.inf
