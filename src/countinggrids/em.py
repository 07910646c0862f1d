"""The one EM of the whole family.

The letters are the paper's: pi (what a cell holds), h (what a window holds), P (how often a window is used), q (where
a bag lies), A (what was seen in the block at a cell). Arrays are planes: features first, then the axes of the grid.
What tells one model from another is its `Geometry`: which sections are matched and which are painted.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from countinggrids import arrays, posterior, torus
from countinggrids.compiling import is_much
from countinggrids.geometry import Geometry, Shape
from countinggrids.posterior import Scores
from countinggrids.products import Counts, Runner
from countinggrids.shortlist import Search, Shortlist, Windows
from countinggrids.tiles import Part, TiledPosterior

Array = arrays.Array

SMALLEST = 1e-25
"""Added to what divides or is taken the logarithm of, for a feature absent from a window; the floor of P."""
FEWEST_CHUNKS = 4
"""Pieces that an E step is cut into even where the bags are few, for threads to share."""
PLANE_ENTRIES = 2**17
"""Features times cells that one piece of work on the grid takes, few enough to stay in cache."""
LARGE_GRID = 2**20
"""Features times cells from which logarithms are compiled."""


class Grid(NamedTuple):
    """The parameters: pi, (features, *grid), and log P, (*grid,)."""

    pi: Array
    log_prior: Array

    def placed(self, engine: "Engine") -> "Grid":
        """Put it where the engine works."""
        return Grid(engine.place(self.pi), engine.place(self.log_prior))

    def fetched(self) -> "Grid":
        """Give it as NumPy arrays."""
        return Grid(arrays.fetched(self.pi), arrays.fetched(self.log_prior))

    def copy_of(self, number: int) -> "Grid":
        """Give one of several grids that are side by side."""
        return Grid(self.pi[:, number], self.log_prior[number])


def side_by_side(grids: Sequence[Grid]) -> Grid:
    """Put grids side by side, along a first axis of their own."""
    return Grid(np.stack([grid.pi for grid in grids], axis=1), np.stack([grid.log_prior for grid in grids]))


class Statistics(NamedTuple):
    """What the E step hands to the M step; adds up over shares of the bags."""

    seen: Array  # A, (features, *grid)
    usage: Array  # sum_t q_t, (*grid,), always NumPy's and float64
    log_likelihood: Any  # a number; (copies,) where the grid has several
    h: Array | None = None  # of the painted blocks, where the E step had it at hand

    def scaled(self, factor: float) -> "Statistics":
        """Multiply by a number, in these arrays: at 50,000 features a copy would be felt."""
        seen, usage = self.seen, self.usage
        seen *= factor
        usage *= factor
        return Statistics(seen, usage, self.log_likelihood * factor, self.h)

    def plus(self, other: "Statistics") -> "Statistics":
        """Add another's, into these arrays."""
        seen, usage = self.seen, self.usage
        seen += other.seen
        usage += other.usage
        return Statistics(seen, usage, self.log_likelihood + other.log_likelihood, self.h)


class Bags(NamedTuple):
    """Bags in the two forms the E and M steps want, with a weight each."""

    matched: Counts
    painted: Counts
    weights: Array
    shortlist: Shortlist | None = None  # what an iteration leaves to the next, where anything is to be left

    def rows(self, rows: slice) -> "Bags":
        return Bags(self.matched.rows(rows), self.painted.rows(rows), self.weights[rows])


class Engine(Runner, Protocol):
    """What EM asks of an engine: an ordered map, a sum over shares, on which arrays, and how much to take at once."""

    def total(self, function: Callable[..., Any], shares: Iterable[Any], *common: Any) -> Any: ...

    def place(self, values: Array) -> Any: ...

    def ready(self, bags: Bags) -> Bags: ...

    def hold(self, shares: Iterable[Bags]) -> Iterable[Bags]: ...

    @property
    def block_entries(self) -> int: ...

    @property
    def chunk_entries(self) -> int: ...


def histograms(pi: Array, block: Shape) -> Array:
    """Average pi over the block at every cell (Eq. h)."""
    return torus.window_sum(pi, block) / prod(block)


def windows_of(grid: Grid, geometry: Geometry, beta: float, engine: Engine) -> tuple[Windows, Array]:
    """Compute what bags are matched with, beta log h and log P, and h itself."""
    pi, xp = grid.pi, arrays.namespace(grid.pi)
    table, h = xp.empty_like(pi), xp.empty_like(pi)
    block, is_compiled = geometry.block(painted=False), is_much(pi, LARGE_GRID)

    def fill(features: slice) -> None:
        part = xp.add(histograms(pi[features], block), SMALLEST, out=h[features])
        logs = arrays.log(part, table[features], is_compiled)
        if beta != 1:
            logs *= beta

    list(engine.map(fill, _feature_pieces(pi)))
    return Windows(table, grid.log_prior, geometry.copies), h


def locate(counts: Counts, windows: Windows, engine: Engine, search: Search | None = None) -> tuple[Any, Array]:
    """Compute q and log p(bag) of one block of bags (Eqs. qkl, qkl2, qklE).

    Where few cells have a q that is not lost in rounding, only these come back. A search finds them tile by tile, and
    may do so without matching the bags with all cells.

    Returns
    -------
    q : (bags, cells), dense, CSR or, from a search, in tiles
    log_likelihood : (bags,), float64; (bags, copies) where the grid has several
    """
    table, log_prior = windows.table, windows.log_prior.reshape(-1)
    n_bags, n_cells = counts.shape[0], log_prior.shape[0]
    planes = counts.prepare(table)
    fewest = 1 if n_bags * n_cells < posterior.FEW_ENTRIES else FEWEST_CHUNKS
    chunks = pieces(n_bags, max(1, min(engine.chunk_entries // n_cells, -(-n_bags // fewest))))
    q = arrays.namespace(table).empty((n_bags, n_cells), dtype=table.dtype, device=table.device)

    def located(rows: slice) -> tuple[Any, Array]:
        found: tuple[Any, Array] | None = search.by_bounds(rows) if search else None
        if found is not None:
            return found
        scores = Scores.of(counts.match(planes, rows, q[rows]), log_prior, windows.copies)
        found = search.by_scores(rows, scores) if search else posterior.of_few_cells(scores)
        return found or posterior.of_all_cells(scores)

    parts = list(engine.map(located, chunks))
    log_likelihood = np.concatenate([part[1] for part in parts])
    if windows.copies > 1:
        log_likelihood = log_likelihood.reshape(n_bags, -1)
    of_chunks = [part for part, _ in parts]
    if search:
        if all(isinstance(part, Part) for part in of_chunks):
            return TiledPosterior(search.tiles, of_chunks), log_likelihood
        TiledPosterior(search.tiles, [part for part in of_chunks if isinstance(part, Part)]).write(q)
        return q, log_likelihood
    if all(sp.issparse(part) for part in of_chunks):
        return sp.vstack(of_chunks, format="csr"), log_likelihood
    for rows, part in zip(chunks, of_chunks, strict=True):
        if sp.issparse(part):
            q[rows] = part.toarray()
    return q, log_likelihood


def e_step(shares: Iterable[Bags], grid: Grid, geometry: Geometry, beta: float, engine: Engine) -> Statistics:
    """Map every bag to the grid and gather what was seen where."""
    windows, h = windows_of(grid, geometry, beta, engine)
    statistics: Statistics = engine.total(gather, shares, windows, geometry)
    return statistics._replace(h=h) if geometry.matched == geometry.painted else statistics


def gather(bags: Bags, engine: Engine, windows: Windows, geometry: Geometry) -> Statistics:
    """Make the E step of one share of the bags, block by block."""
    bags = engine.ready(bags)
    canvas = bags.painted.canvas(windows.table)
    usage, log_likelihood = np.zeros(geometry.grid), np.zeros(geometry.copies)
    search = Search.of(bags.matched, windows, bags.shortlist)
    for rows in blocks(bags, geometry, engine):
        some = bags.rows(rows)
        q, each = locate(some.matched, windows, engine, search and search.rows(rows))
        q = _weighted(q, some.weights)
        some.painted.paint(q, engine, canvas)
        usage += _added_up(q, engine).reshape(geometry.grid)
        log_likelihood += some.weights @ each
    if search and bags.shortlist:
        search.leave(bags.shortlist)
    return Statistics(bags.painted.planes(canvas), usage, log_likelihood if geometry.copies > 1 else log_likelihood[0])


def blocks(bags: Bags, geometry: Geometry, engine: Engine) -> list[slice]:
    """Cut the bags into blocks whose posterior and dense counts fit the engine's limit."""
    widest = max(geometry.n_cells, bags.painted.shape[1] if bags.painted.is_dense else 0)
    return pieces(bags.weights.size, max(1, engine.block_entries // widest))


def expected_counts(pi: Array, seen: Array, block: Shape, h: Array | None = None) -> Array:
    """Share what was seen in each block out among its cells (Eqs. M1, M2; Eq. ME where a block is one cell).

    The 1/|V| makes the result add up to the counts. h is worked out where it is not given.
    """
    if prod(block) == 1:
        return seen
    if h is None:
        h = histograms(pi, block) + SMALLEST
    shared = torus.covering_sum(seen / h, block)
    shared *= pi
    shared /= prod(block)
    return shared


def m_step(
    grid: Grid, statistics: Statistics, geometry: Geometry, eta: Array, location_prior: str, engine: Engine
) -> tuple[Grid, Any]:
    """Re-estimate pi (Eqs. M1_full, M2, ME) and P (Eqs. pl1, pl2); eta is (features,).

    Gives the log density of the old pi too, for the objective: both go through pi, and so do it once.
    """
    xp = arrays.namespace(grid.pi)
    counts = xp.empty_like(grid.pi)
    block = geometry.block(painted=True)
    pseudocounts = arrays.like(grid.pi, eta).reshape(-1, *(1,) * len(geometry.grid))
    is_compiled = is_much(counts, LARGE_GRID)

    def fill(features: slice) -> Any:
        pi, h = grid.pi[features], None if statistics.h is None else statistics.h[features]
        part = expected_counts(pi, statistics.seen[features], block, h)
        xp.add(part, pseudocounts[features], out=counts[features])
        return log_density(pi, eta[features], geometry.copies, is_compiled)

    density = sum(engine.map(fill, _feature_pieces(counts)))
    log_prior = log_location_prior(statistics.usage, geometry, location_prior)
    return Grid(normalised(counts, geometry.groups), arrays.like(counts, log_prior)), density


def log_density(pi: Array, eta: Array, copies: int, is_compiled: bool) -> Any:
    """Compute sum_i sum_z eta_z log pi, the log of the Dirichlet prior without its constant; of each copy."""
    if not eta.any():
        return 0.0
    logs = arrays.summed_logs((pi + SMALLEST).reshape(len(pi) * copies, -1), is_compiled)
    return eta @ (logs.reshape(len(pi), copies) if copies > 1 else logs)


def normalised(counts: Array, groups: int) -> Array:
    """Scale counts so that each group of features sums to one in every cell; a cell with none becomes uniform."""
    xp = arrays.namespace(counts)
    by_group = counts.reshape(groups, -1, *counts.shape[1:])
    total = xp.sum(by_group, axis=1, keepdims=True)
    empty = total == 0
    if empty.any():
        by_group = xp.where(empty, 1, by_group)
        total = xp.sum(by_group, axis=1, keepdims=True)
    by_group /= total
    return by_group.reshape(counts.shape)


def log_location_prior(usage: Array, geometry: Geometry, kind: str) -> Array:
    """Compute log P from the usage of the windows: "exact" (Eq. pl1), "smoothed" (Eq. pl2) or "uniform"."""
    if kind == "uniform":
        usage = np.ones_like(usage)
    elif kind == "smoothed":
        usage = torus.covering_sum(usage, geometry.window)
    of_one_grid = tuple(range(int(geometry.copies > 1), usage.ndim))
    return np.log(np.maximum(usage / usage.sum(axis=of_one_grid, keepdims=True), SMALLEST))


def _weighted(q: Any, weights: Array) -> Any:
    if (weights == 1).all():
        return q
    if isinstance(q, TiledPosterior):
        q.weigh(weights)
        return q
    if sp.issparse(q):
        q.data *= np.repeat(weights, np.diff(q.indptr)).astype(q.dtype)
        return q
    q *= arrays.like(q, weights)[:, None]
    return q


def _added_up(q: Any, engine: Engine) -> Array:
    """Add q up over the bags, (cells,)."""
    if not isinstance(q, np.ndarray):
        return np.asarray(arrays.fetched(q.sum(axis=0)), dtype=np.float64)
    parts = engine.map(lambda rows: q[rows].sum(axis=0), pieces(len(q), -(-len(q) // FEWEST_CHUNKS)))
    return np.stack(list(parts)).sum(axis=0, dtype=np.float64)


def _feature_pieces(planes: Array) -> list[slice]:
    return pieces(len(planes), max(1, PLANE_ENTRIES // prod(planes.shape[1:])))


def pieces(n: int, size: int) -> list[slice]:
    """Cut n into pieces of nearly equal length, none longer than size."""
    count = max(1, -(-n // size))
    cuts = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(cuts)]
