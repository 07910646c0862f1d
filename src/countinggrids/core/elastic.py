"""Elastic sections: each section of a bag may slip by a few cells from its place in the window.

A section s of a bag at k lies at k + d_s + d, where the slip d has a learned probability rho_s(d). Given k, sections
slip independently, so that EM stays exact:

    M_s[j]     = counts_s . log h[j]
    m_s[k]     = log sum_d rho_s(d) exp M_s[k + d_s + d]
    q[k]       ∝ P[k] exp sum_s m_s[k]
    r_s(k, d)  = q[k] rho_s(d) exp(M_s[k + d_s + d] - m_s[k])
    R_s[j]     = sum_d r_s(j - d_s - d, d)                          where section s is painted
    rho_s'(d)  ∝ sum_t sum_k r_s(k, d)

With one offset this is the tessellated grid. With as many as there are cells, all equally likely, sections are located
independently of each other.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from countinggrids.core import arrays, em, torus
from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry, Shape
from countinggrids.core.pieces import largest_piece, pieces
from countinggrids.core.protocols import Bags, Counts, Pool


@dataclass(frozen=True)
class ElasticGeometry(Geometry):
    """A geometry whose matched sections may slip.

    Parameters
    ----------
    grid, window, matched, painted, groups : tuple of int
        As for `Geometry`; painted sections slip with the matched one that they lie in.
    n_slips : tuple of int
        Number of offsets along each axis by which a section may slip; 1 is none.
    """

    n_slips: Shape = ()

    @classmethod
    def with_slack(cls, rigid: Geometry, slack: Shape) -> "ElasticGeometry":
        """Return a geometry whose sections slip by up to `slack` cells, and to each cell of the torus once at most."""
        n_slips = tuple(min(2 * cells + 1, length) for length, cells in zip(rigid.grid, slack, strict=True))
        return cls(rigid.grid, rigid.window, rigid.matched, rigid.painted, n_slips=n_slips)

    def resized(self, grid: Shape, window: Shape) -> "ElasticGeometry":
        """Return the geometry on another grid, with slips in proportion to the window."""
        sizes = zip(self.n_slips, grid, window, self.window, strict=True)
        n_slips = tuple(min(1 + 2 * -(-(n // 2) * w // old), e) for n, e, w, old in sizes)
        return replace(self, grid=grid, window=window, n_slips=n_slips)

    def undivided(self) -> Geometry:
        """Return the geometry of whole bags, which do not slip."""
        ones = (1,) * len(self.grid)
        return Geometry(self.grid, self.window, ones, ones)

    @property
    def is_rigid(self) -> bool:
        """Whether no section may slip."""
        return prod(self.n_slips) == 1

    @property
    def slip_ranges(self) -> list[range]:
        """The offsets along each axis, around 0."""
        return [range(-(n // 2), n - n // 2) for n in self.n_slips]

    @cached_property
    def painted_inside(self) -> list[dict[int, Shape]]:
        """For each matched section, the painted sections in it, with their offsets from its corner."""
        block = self.block(painted=False)
        inside = []
        for corner in self.matched_offsets:
            away = [tuple(a - b for a, b in zip(offset, corner, strict=True)) for offset in self.painted_offsets]
            inside.append({i: d for i, d in enumerate(away) if all(0 <= x < n for x, n in zip(d, block, strict=True))})
        return inside


def first_extra(geometry: ElasticGeometry) -> Array:
    """Return the log-probabilities of the slips with which EM starts, (sections, *n_slips): all alike."""
    return np.full((prod(geometry.matched), *geometry.n_slips), -np.log(prod(geometry.n_slips)))


def extra_step(grid: Grid, extra: Array, geometry: ElasticGeometry) -> Array:
    """Estimate log rho, (sections, *n_slips), from the expected number of slips of each section by each offset."""
    total = extra.sum(axis=tuple(range(1, extra.ndim)), keepdims=True)
    rho = np.where(total > 0, extra / np.maximum(total, em.SMALLEST), 1 / prod(geometry.n_slips))
    return np.log(np.maximum(rho, em.SMALLEST))


class Windows(NamedTuple):
    """What bags are matched with: beta log h, log P, and how sections may slip."""

    log_h: Array
    log_prior: Array
    springs: "Springs"


def windows_of(grid: Grid, geometry: ElasticGeometry, beta: float, pool: Pool) -> Windows:
    """Compute beta log h of the matched blocks."""
    return Windows(*em.windows_of(grid, geometry, beta, pool), Springs(geometry, grid.extra))


class Springs:
    """The sections of a window, and how each may slip.

    Parameters
    ----------
    geometry : ElasticGeometry
        Grid, window and sections.
    log_slip : ndarray of shape (n_sections, *n_slips)
        Log-probabilities of the slips.
    """

    def __init__(self, geometry: ElasticGeometry, log_slip: Array):
        self.geometry, self.grid, self.offsets = geometry, geometry.grid, geometry.matched_offsets
        self.log_slip = log_slip
        self.after = tuple(n - 1 for n in geometry.n_slips)
        self.lowest = tuple(each.start for each in geometry.slip_ranges)
        self.slips = list(itertools.product(*(range(n) for n in geometry.n_slips)))

    def padded(self, M: Array, section: int) -> Array:
        """Arrange M of a section so that the slip by an offset is one slice of it, (bags, *padded grid)."""
        start = [d + low for d, low in zip(self.offsets[section], self.lowest, strict=True)]
        return torus.pad(torus.shift(M.reshape(-1, *self.grid), start), self.after)

    def view(self, padded: Array, slip: Shape) -> Array:
        """Return M[k + d_s + d] of every cell k, a view, (bags, *grid)."""
        return padded[(slice(None), *(slice(d, d + n) for d, n in zip(slip, self.grid, strict=True)))]

    def log_sum(self, padded: Array, section: int) -> Array:
        """Compute m, (bags, *grid)."""
        parts = _factors(self.log_slip[section])
        if parts is None:
            return self._joint_log_sum(padded, section)
        for axis, log_rho in enumerate(parts, 1):
            padded = _log_sum_along(padded, axis, self.grid[axis - 1], log_rho)
        return padded

    def _joint_log_sum(self, padded: Array, section: int) -> Array:
        xp = arrays.namespace(padded)
        best = padded
        for axis, (n, length) in enumerate(zip(self.geometry.n_slips, self.grid, strict=True), 1):
            best = _largest_along(best, axis, n, length)
        total, term = xp.zeros_like(best), xp.empty_like(best)
        for slip in self.slips:
            xp.subtract(self.view(padded, slip), best, out=term)
            term += float(self.log_slip[(section, *slip)])
            total += arrays.exp_in_place(term)
        total = xp.log(total, out=total)
        total += best
        return total

    def painted(self, padded: Array, m: Array, q: Array, section: int, slips: Array) -> Array:
        """Compute R, (bags, cells), and add the expected numbers of slips of a section to `slips`, in place."""
        xp = arrays.namespace(padded)
        canvas, difference = xp.zeros_like(padded), q / 1
        for slip in self.slips:
            xp.subtract(self.view(padded, slip), m, out=difference)
            difference += float(self.log_slip[(section, *slip)])
            r = arrays.exp_in_place(difference)
            r *= q
            slips[slip] += float(arrays.summed(r.reshape(-1), axis=0))
            here = self.view(canvas, slip)
            here += r
        start = [-d - low for d, low in zip(self.offsets[section], self.lowest, strict=True)]
        return torus.shift(torus.fold(canvas, self.after), start).reshape(len(q), -1)


def posterior(counts: Counts, windows: Windows, pool: Pool) -> tuple[Array, Array]:
    """Compute q, (bags, cells), and log p(bag), (bags,) of float64."""
    springs = windows.springs
    if springs.geometry.is_rigid:
        return em.posterior(counts, em.Windows(windows.log_h, windows.log_prior), pool)
    sections = [_Matcher(each, windows) for each in _matched_sections(counts, springs)]
    pieces = _pieces(counts.shape[0], springs, pool)
    results = list(pool.map(lambda rows: _located(sections, windows, rows)[2:], pieces))
    return _concatenated([q for q, _ in results]), np.concatenate([each for _, each in results])


def e_step(bags: Bags, windows: Windows, geometry: ElasticGeometry, pool: Pool) -> Statistics:
    """Compute the expected sufficient statistics of one chunk of bags, a block of bags at a time.

    `Statistics.extra` is the expected number of slips of each section by each offset, (sections, *n_slips).
    """
    if geometry.is_rigid:
        rigid = em.e_step(bags, em.Windows(windows.log_h, windows.log_prior), geometry, pool)
        return rigid._replace(extra=np.full(windows.springs.log_slip.shape, rigid.usage.sum()))
    sections = [bags.painted.part(list(inside), list(inside.values())) for inside in geometry.painted_inside]
    canvas = sections[0].canvas(windows.log_h)
    usage, slips, log_likelihood = np.zeros(geometry.n_cells), np.zeros(windows.springs.log_slip.shape), 0.0
    for rows in _blocks(bags, geometry, pool):
        parts = _explained(bags.matched.rows(rows), bags.weights[rows], windows, pool)
        for number, section in enumerate(sections):
            section.rows(rows).paint(_concatenated([R[number] for R, *_ in parts]), canvas, pool)
        for _, used, slipped, each in parts:
            usage += used
            slips += slipped
            log_likelihood += each
    return Statistics(sections[0].planes(canvas), usage.reshape(geometry.grid), log_likelihood, slips)


def section_posteriors(counts: Counts, windows: Windows, pool: Pool) -> Array:
    """Compute the posterior over the location of every section, (bags, sections, cells)."""
    parts = _explained(counts, np.ones(counts.shape[0]), windows, pool)
    each = [np.stack([arrays.fetched(planes) for planes in R], axis=1) for R, *_ in parts]
    return np.concatenate(each)


class _Matcher:
    """One section of some bags, matched without an offset."""

    def __init__(self, counts: Counts, windows: Windows):
        self.counts, self.prepared = counts, counts.prepare(windows.log_h)

    def match(self, rows: slice, like: Array, n_cells: int) -> Array:
        """Compute M of some bags, (rows, cells)."""
        shape = (rows.stop - rows.start, n_cells)
        out = arrays.namespace(like).empty(shape, dtype=like.dtype, device=like.device)
        return self.counts.match(self.prepared, rows, out=out)


def _matched_sections(counts: Counts, springs: Springs) -> list[Counts]:
    origin = (0,) * len(springs.grid)
    return [counts.part([number], [origin]) for number in range(len(springs.offsets))]


def _blocks(bags: Bags, geometry: ElasticGeometry, pool: Pool) -> list[slice]:
    """Cut bags into blocks whose R stay within the pool's limit."""
    widest = max(geometry.n_cells * prod(geometry.matched), bags.painted.dense_width)
    return pieces(len(bags.weights), max(1, pool.block_entries // widest))


def _pieces(n_bags: int, springs: Springs, pool: Pool) -> list[slice]:
    """Cut a block into pieces, enough of them for the threads."""
    entries = 2 * len(springs.offsets) * prod(springs.grid)
    most = largest_piece(n_bags, n_bags * entries)
    return pieces(n_bags, max(1, min(pool.piece_entries // entries, most)))


def _located(sections: list[_Matcher], windows: Windows, rows: slice) -> tuple[list[Array], list[Array], Array, Array]:
    """Compute M, padded, and m of every section of some bags, then q and log p(bag)."""
    springs, n_cells = windows.springs, prod(windows.springs.grid)
    M = [springs.padded(each.match(rows, windows.log_h, n_cells), number) for number, each in enumerate(sections)]
    m = [springs.log_sum(padded, number) for number, padded in enumerate(M)]
    joint = windows.log_prior + m[0]
    for each in m[1:]:
        joint += each
    q = joint.reshape(-1, n_cells)
    log_likelihood = em.softmax(q)
    return M, m, q, log_likelihood


def _explained(
    counts: Counts, weights: Array, windows: Windows, pool: Pool
) -> list[tuple[list[Array], Array, Array, float]]:
    """Compute R of every section, usage, slips and log p of a block of bags, times their weights, piece by piece."""
    springs = windows.springs
    sections = [_Matcher(each, windows) for each in _matched_sections(counts, springs)]

    def explain(rows: slice) -> tuple[list[Array], Array, Array, float]:
        M, m, q, each = _located(sections, windows, rows)
        q *= arrays.like(q, weights[rows])[:, None]
        slips, planes = np.zeros(springs.log_slip.shape), q.reshape(-1, *springs.grid)
        R = [springs.painted(M[s], m[s], planes, s, slips[s]) for s in range(len(M))]
        return R, arrays.summed(q, axis=0), slips, float(weights[rows] @ each)

    return list(pool.map(explain, _pieces(counts.shape[0], springs, pool)))


def _concatenated(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else arrays.namespace(parts[0]).concat(parts)


def _factors(values: Array) -> list[Array] | None:
    """Return log-probabilities along each axis whose sum is log rho, or None where there are none.

    Where slips along the axes are independent, sums over slips go axis by axis.
    """
    if values.ndim == 1:
        return [values]
    middle = tuple(n // 2 for n in values.shape)
    parts = [values[(*middle[:axis], slice(None), *middle[axis + 1 :])] for axis in range(values.ndim)]
    together = sum(np.ix_(*parts)) - (values.ndim - 1) * values[middle]
    if not np.allclose(together, values, rtol=0, atol=1e-6):
        return None
    first, *rest = parts
    return [first, *(each - values[middle] for each in rest)]


def _along(planes: Array, axis: int, start: int, length: int) -> Array:
    return planes[(*(slice(None),) * axis, slice(start, start + length))]


def _largest_along(planes: Array, axis: int, n: int, length: int) -> Array:
    """Return the largest of n neighbors along an axis."""
    xp = arrays.namespace(planes)
    best = _along(planes, axis, 0, length)
    for d in range(1, n):
        best = xp.maximum(best, _along(planes, axis, d, length))
    return best


def _log_sum_along(planes: Array, axis: int, length: int, log_rho: Array) -> Array:
    """Compute log sum_d rho(d) exp planes[k + d] along an axis."""
    if len(log_rho) == 1:
        return planes + float(log_rho[0])
    xp = arrays.namespace(planes)
    best = _largest_along(planes, axis, len(log_rho), length)
    total, term = xp.zeros_like(best), xp.empty_like(best)
    for d, value in enumerate(log_rho.tolist()):
        xp.subtract(_along(planes, axis, d, length), best, out=term)
        term += value
        total += arrays.exp_in_place(term)
    total = xp.log(total, out=total)
    total += best
    return total
