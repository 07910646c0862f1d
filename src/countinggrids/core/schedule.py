"""The annealing schedule: inverse temperatures, pseudocounts, and the stopping rule.

Plain EM ends in a jumble of tiles. Deterministic annealing starts at a small inverse temperature beta, where every bag
lies everywhere, and lets the layout form from its largest structures down. Pseudocounts are strong while the layout
forms, because a strong pull to the mean histogram lets only the largest structures grow, and weaker afterwards.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from countinggrids.core.arrays import Array

RATE, QUICK_RATE = 1.01, 1.05
"""Growth of beta in one iteration: while the layout forms, and after that."""
BATCH_RATE, BATCH_QUICK_RATE = 1.02, 1.07
"""The same for stepwise EM, where a batch changes the grid more than an iteration over all bags does."""
GRADUAL = 0.02
"""Critical beta below which the layout forms gradually, all the way to a beta near 1, as that of real texts does."""
GRADUAL_RATE, FORMING_RATE = 1.1, 1.06
"""Growth of beta for such bags: on the smallest grid, and on the next one, where the layout forms, and the full one."""
GRADUALLY_FORMED, KEEPING = 10.0, 5.0
"""Beta at which such a layout has formed, and at which the full grid goes on, in units of the critical beta."""
FORMED = 3.0
"""Beta at which the layout has formed, in units of the critical beta."""
CRITICAL_BAGS = 10_000
"""Number of bags, at most about, from which the critical beta is computed."""
REFINING = 2.0
"""Beta at which the full grid starts from an upsampled layout, in units of the critical beta."""
FORMING_FRACTION, GRADUAL_FRACTION = 0.3, 0.2
"""Pseudocounts while the layout forms, as a fraction of the tokens of a cell; the latter where it forms gradually."""
SETTLED_FRACTION = 0.2
"""The same, at most, once the layout has formed."""
SETTLED_TOTAL = 4.0
"""Pseudocounts of a cell in total, at most, once the layout has formed, in units of sqrt(effective features)."""
SCENE_FRACTION = 0.1
"""Pseudocounts, as a fraction of the tokens of a cell, where bags are overlapping windows of a scene."""
ROUNDING = 1e-10
"""What is left of a vector apart from the mean, as a fraction of it, that is rounding alone: the bags are alike."""


class Annealing(NamedTuple):
    """Inverse temperatures: from `start`, times `rate` in every iteration, to `end`; faster once beta is `formed`."""

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

    def within(self, n_iterations: int) -> "Annealing":
        """Anneal faster, if necessary, so that the end is reached within a number of iterations."""
        if len(self.betas()) <= n_iterations:
            return self
        return self._replace(rate=(self.end / self.start) ** (1 / max(1, n_iterations)), formed=np.inf)


@dataclass(frozen=True)
class Pseudocounts:
    """The pseudocounts eta of Eq. M1_full, the same in every cell.

    Parameters
    ----------
    fixed : float, ndarray of shape (n_features,) or None
        Given by the user; None takes them along the mean histogram of the bags.
    fraction : float, default=0.0
        Their total, as a fraction of the tokens of a cell.
    at_most : float, default=inf
        Largest total, in units of sqrt(effective features).
    is_even : bool, default=False
        Whether all features have the same. Along the mean histogram, cells that no window covers resemble every bag,
        which attracts windows from where they belong.
    """

    fixed: Array | float | None
    fraction: float = 0.0
    at_most: float = np.inf
    is_even: bool = False

    def of(self, totals: Array, n_cells: int) -> Array:
        """Compute eta, (features,), from the totals of the features over all bags."""
        if self.fixed is not None:
            return np.broadcast_to(np.asarray(self.fixed, dtype=np.float64), totals.shape)
        tokens = float(totals.sum()) / n_cells
        seen = totals[totals > 0] / totals.sum()
        effective = float(np.exp(-seen @ np.log(seen)))
        direction = np.full(totals.size, 1 / totals.size) if self.is_even else smoothed(totals)
        return direction * tokens * min(self.fraction, self.at_most * effective**0.5 / tokens)


def smoothed(totals: Array) -> Array:
    """Return the histogram of all bags, with some mass for unseen features (Witten-Bell smoothing).

    Every feature that was seen counts once more, and these counts are spread over all features: the more different
    features were seen, the likelier is one that was not.
    """
    n_seen = np.count_nonzero(totals)
    return (totals + n_seen / totals.size) / (totals.sum() + n_seen)


class Phase(NamedTuple):
    """Iterations at one inverse temperature, made until the objective changes by at most `tol` (inf: one iteration)."""

    beta: float
    eta: Pseudocounts
    tol: float

    @property
    def is_annealing(self) -> bool:
        """Whether the phase is one iteration, after which the inverse temperature rises."""
        return self.tol == np.inf

    def has_settled(self, objective: float, previous: float) -> bool:
        """Return whether the objective changed so little that the phase ends: the stopping rule."""
        return bool(abs(objective - previous) <= self.tol)


@dataclass(frozen=True)
class Schedule:
    """How a run of EM proceeds.

    Parameters
    ----------
    annealing : Annealing or None
        Inverse temperatures; None stays at 1.
    forming, settled : Pseudocounts
        Pseudocounts while the layout forms, and afterwards.
    location_prior : {"smoothed", "exact", "uniform"}
        How the prior over windows is estimated.
    max_iter : int
        Largest number of iterations.
    tol : float
        Change of the objective per token at which the last phase ends.
    has_batches : bool, default=False
        Whether iterations use batches of bags during annealing.
    is_validated : bool, default=False
        Whether bags that are held out tell when the last phase ends.
    scored_from : float, default=inf
        Inverse temperature from which they may end the run during the annealing too.
    given : tuple of Phase, default=()
        Phases that replace those of the annealing.
    """

    annealing: Annealing | None
    forming: Pseudocounts
    settled: Pseudocounts
    location_prior: str
    max_iter: int
    tol: float
    has_batches: bool = False
    is_validated: bool = False
    scored_from: float = np.inf
    given: tuple[Phase, ...] = ()

    @property
    def is_gradual(self) -> bool:
        """Whether the layout forms gradually."""
        return self.annealing is not None and self.is_validated and self.annealing.start < GRADUAL

    def in_batches(self) -> "Schedule":
        """Return the schedule of stepwise EM, in which beta grows at least by `BATCH_RATE` while the layout forms."""
        annealing = self.annealing
        if annealing is not None:
            annealing = annealing._replace(rate=max(annealing.rate, BATCH_RATE))
        return replace(self, annealing=annealing, has_batches=True)

    def for_candidates(self) -> "Schedule":
        """Return the schedule of candidates on a small grid, which end once the layout has formed."""
        return replace(self, settled=self.forming, tol=10 * self.tol)

    def for_forming(self) -> "Schedule":
        """Return the schedule of a grid between the smallest and the full one, on which a layout forms gradually."""
        assert self.annealing is not None
        start, end = (min(1.0, times * self.annealing.start) for times in (REFINING, GRADUALLY_FORMED))
        betas = Annealing(start, FORMING_RATE, end).within(self.max_iter).betas()
        return self.for_phases([Phase(beta, self.forming, np.inf) for beta in betas])

    def for_refining(self, is_formed: bool = False, is_from_batches: bool = False) -> "Schedule":
        """Return the schedule of the full grid, which starts from an upsampled layout.

        Parameters
        ----------
        is_formed : bool, default=False
            Whether the layout formed gradually.
        is_from_batches : bool, default=False
            Whether it was learned from batches of bags.

        Returns
        -------
        schedule : Schedule
            The schedule.
        """
        assert self.annealing is not None
        start = min(self.annealing.end, (KEEPING if is_formed else REFINING) * self.annealing.start)
        rate = BATCH_QUICK_RATE if self.has_batches or is_from_batches else QUICK_RATE
        if is_formed:
            rate = FORMING_RATE
        annealing = Annealing(start, rate, self.annealing.end).within(self.max_iter // 2)
        scored_from = KEEPING * self.annealing.start if self.is_gradual else np.inf
        return replace(self, annealing=annealing, scored_from=scored_from)

    def for_phases(self, phases: list[Phase]) -> "Schedule":
        """Return a schedule of given phases of one iteration each."""
        return replace(self, given=tuple(phases), max_iter=len(phases), is_validated=False)

    def for_comparing(self, n_iterations: int) -> "Schedule":
        """Return a schedule that ends after some iterations."""
        return replace(self, forming=self.settled, max_iter=n_iterations, tol=0.0)

    def for_settling(self, beta: float) -> "Schedule":
        """Return the schedule of a grid that has a layout, and starts at an inverse temperature."""
        end = 1.0 if self.annealing is None else self.annealing.end
        return replace(self, annealing=Annealing(min(beta, end), QUICK_RATE, end).within(self.max_iter // 2))

    def phases(self) -> list[Phase]:
        """List the phases. The layout settles before the pseudocounts are weakened.

        Not so with batches, where settling takes a third of the time and does not improve the result, and not where
        bags are held out, which tell when to go on.
        """
        if self.given:
            return list(self.given)
        if self.annealing is None:
            return [Phase(1.0, self.settled, self.tol)]
        phases = [Phase(beta, self.forming, np.inf) for beta in self.annealing.betas()]
        if self.forming != self.settled and not (self.has_batches or self.is_validated):
            phases.append(Phase(self.annealing.end, self.forming, 10 * self.tol))
        return [*phases, Phase(self.annealing.end, self.settled, self.tol)]


def critical_beta(counts: Any, weights: Array) -> float:
    """Compute the inverse temperature at which a grid without structure begins to form one.

    Around the grid that holds the mean histogram everywhere, a small wave grows by beta times the largest eigenvalue
    of C' C / n (n the totals of the features) apart from the mean: the first inertia of correspondence analysis, in
    tokens. It is computed by power iteration.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (n_bags, n_features)
        Bags without sections.
    weights : ndarray of shape (n_bags,)
        Weights of the bags.

    Returns
    -------
    beta : float
        The critical inverse temperature; infinite where all bags are alike.
    """
    weights = weights.astype(np.float64)
    totals = np.asarray(counts.T @ weights, dtype=np.float64)
    scale = np.divide(1, np.sqrt(totals), out=np.zeros_like(totals), where=totals > 0)
    mean = np.sqrt(totals / totals.sum())
    vector = np.random.default_rng(0).standard_normal(totals.size)
    eigenvalue = 0.0
    for _ in range(30):
        length = np.linalg.norm(vector)
        vector -= mean * (mean @ vector)
        if np.linalg.norm(vector) <= ROUNDING * length:
            return np.inf
        vector /= np.linalg.norm(vector)
        image = scale * (counts.T @ (weights * (counts @ (scale * vector))))
        eigenvalue, vector = float(vector @ image), np.asarray(image, dtype=np.float64)
    return 1 / eigenvalue if eigenvalue > 0 else np.inf
