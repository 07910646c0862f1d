"""Callbacks: what they receive after every iteration, and the one that logs progress to stderr."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid


@dataclass(frozen=True, eq=False)
class Iteration:
    """What a callback receives after every iteration.

    Attributes
    ----------
    stage : {"candidates", "learning"}
        Whether a small grid is trained to find a layout, or the full grid.
    restart : int
        Number of the restart, from 0.
    candidate : int
        Number of the candidate, from 0; 0 while learning.
    number : int
        Number of the iteration, from 1.
    planned : int
        Largest number of iterations.
    beta : float
        Inverse temperature of the iteration.
    objective : float
        Log-likelihood plus log prior of pi per token, before the M step of this iteration.
    pi : ndarray of shape (*grid, n_features)
        The grid, a view: copy it to keep it.
    log_prior : ndarray of shape (*grid,)
        Log prior of the windows.
    """

    stage: str
    restart: int
    candidate: int
    number: int
    planned: int
    beta: float
    objective: float
    _grid: Grid = field(repr=False)

    @cached_property
    def pi(self) -> Array:
        return np.moveaxis(self._fetched.pi, 0, -1)

    @cached_property
    def log_prior(self) -> Array:
        return self._fetched.log_prior

    @property
    def n_cells(self) -> int:
        """Number of cells of the grid, which is smaller for candidates."""
        return prod(self._grid.log_prior.shape)

    def fetched(self) -> Grid:
        """Return the parameters as NumPy arrays, features first."""
        return self._fetched

    @cached_property
    def _fetched(self) -> Grid:
        return self._grid.fetched()


Callback = Callable[[Iteration], Any]
"""Called after every iteration; a true result stops the run of EM."""


def combined(*callbacks: Callback | None) -> Callback:
    """Return a callback that calls all others, and stops when one of them does."""
    active = [callback for callback in callbacks if callback is not None]

    def call(iteration: Iteration) -> bool:
        results = [callback(iteration) for callback in active]
        return any(results)

    return call


class VerboseLogger:
    """Log progress to stderr in lines: every two seconds, or after every iteration from verbose=2 on.

    Parameters
    ----------
    verbose : int
        Level of detail.
    """

    def __init__(self, verbose: int):
        self.pause = 2.0 if verbose == 1 else 0.0
        self.last = time.monotonic()

    def __call__(self, now: Iteration) -> None:
        if time.monotonic() - self.last < self.pause:
            return
        self.last = time.monotonic()
        stage = f"candidate {now.candidate + 1}" if now.stage == "candidates" else now.stage
        print(
            f"{stage}, restart {now.restart + 1}, iteration {now.number} of at most {now.planned}: "
            f"beta {now.beta:.3g}, objective per token {now.objective:.6f}",
            file=sys.stderr,
        )
