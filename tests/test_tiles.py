"""Posteriors worked out tile by tile, against all cells in float64."""

from itertools import product

import numpy as np
import pytest

from cases import ENGINE, GEOMETRIES
from countinggrids import tiles
from countinggrids.products import DenseCounts
from countinggrids.tiles import TiledPosterior

GRID, OFFSETS, N_FEATURES = (9, 14), ((0, 0), (2, 3)), 5
TILES = tiles.tiles_of(GRID, OFFSETS)
LOST = np.log(1e-6)
RUNS = slice(0, 40), slice(40, 90)


class Case:
    """Sharp bags, and what they are matched with."""

    def __init__(self, rng, dtype, n_bags=90):
        self.counts = rng.multinomial(600, np.full(2 * N_FEATURES, 0.1), n_bags).astype(dtype)
        self.table = np.log(rng.dirichlet(np.ones(N_FEATURES), np.prod(GRID))).astype(dtype)
        self.log_prior = np.log(rng.dirichlet(np.ones(np.prod(GRID)))).astype(dtype)
        self.prior = TILES.of_cells(self.log_prior, -np.inf)
        by_cell = self.table.astype(np.float64).reshape(*GRID, -1)
        windows = [np.roll(by_cell, (-i, -j), axis=(0, 1)).reshape(-1, N_FEATURES) for i, j in OFFSETS]
        self.joint = self.counts.astype(np.float64) @ np.hstack(windows).T + self.log_prior
        highest = np.where(TILES.is_real, self.joint[:, TILES.cells], -np.inf).max(axis=2)
        self.upper = np.ascontiguousarray(highest.T + 1e-3).astype(dtype)
        self.slots = TILES.slots[self.joint.argmax(axis=1)]

    def found(self, slack=0.0, most=1.0, few=1.0, slots=None):
        """Work out the posterior in two runs of bags."""
        found = []
        for rows in RUNS:
            upper = (self.upper + slack).astype(self.upper.dtype)[:, rows]
            where = np.array((self.slots if slots is None else slots)[rows])
            found.append(
                tiles.find(self.counts[rows], self.table, TILES, self.prior, upper, where, LOST, 1e-4, most, few, rows)
            )
        if None in found:
            return None
        return TiledPosterior(TILES, [part for part, _ in found]), np.concatenate([each for _, each in found])

    def defined(self):
        """Give q, without what is lost, and log p(bag), from all cells."""
        best = self.joint.max(axis=1, keepdims=True)
        p = np.exp(self.joint - best) * (self.joint > best + LOST)
        return p / p.sum(axis=1, keepdims=True), best[:, 0] + np.log(p.sum(axis=1))


@pytest.fixture(params=["float32", "float64"])
def case(request, rng):
    return Case(rng, request.param)


@pytest.mark.parametrize("row", GEOMETRIES)
def test_tiles_hold_every_cell_once(row):
    geometry = GEOMETRIES[row]
    of_grid = tiles.tiles_of(geometry.grid, tuple(geometry.matched_offsets))
    assert sorted(of_grid.cells[of_grid.is_real]) == list(range(geometry.n_cells))
    np.testing.assert_array_equal(of_grid.cells.ravel()[of_grid.slots], range(geometry.n_cells))
    assert of_grid.is_real.ravel()[of_grid.slots].all()
    for cells, is_real in zip(of_grid.cells, of_grid.is_real, strict=True):
        assert is_real[0]
        assert (cells[~is_real] == cells[0]).all()


def test_places_are_where_sections_begin():
    of_grid = tiles.tiles_of((5, 6), ((0, 0), (2, 3)))
    cells = np.arange(30).reshape(5, 6)
    for tile, slot in product(range(len(of_grid.cells)), range(16)):
        i, j = divmod(of_grid.cells[tile, slot], 6)
        assert of_grid.places[0, tile, slot] == cells[i, j]
        assert of_grid.places[1, tile, slot] == cells[(i + 2) % 5, (j + 3) % 6]


def whole(q):
    """Give q of all cells."""
    given = np.full((q.parts[-1].rows.stop, TILES.slots.size), np.nan, q.parts[0].q.dtype)
    q.write(given)
    return given


def test_q_is_that_of_the_definition(case):
    q, log_likelihood = case.found()
    wanted, wanted_likelihood = case.defined()
    tolerance = {"float32": 1e-3, "float64": 1e-12}[case.table.dtype.name]
    assert q.parts[0].q.dtype == case.table.dtype
    np.testing.assert_allclose(whole(q), wanted, rtol=tolerance, atol=2e-6 * (tolerance > 1e-9))
    np.testing.assert_allclose(log_likelihood, wanted_likelihood, rtol=tolerance)
    assert 0 < np.count_nonzero(whole(q)) < wanted.size / 2


def test_tiles_looked_at_in_vain_change_no_bit(case, rng):
    q, log_likelihood = case.found()
    for slots in (None, rng.permutation(TILES.slots)[: len(case.counts)]):
        for slack in (0, 5, np.inf):
            same, same_likelihood = case.found(slack, slots=slots)
            np.testing.assert_array_equal(log_likelihood, same_likelihood)
            for part, other in zip(q.parts, same.parts, strict=True):
                for ours, theirs in zip(part[1:], other[1:], strict=True):
                    np.testing.assert_array_equal(ours, theirs)


def test_bounds_become_exact_and_the_best_cells_are_noted(case):
    upper, slots = np.full_like(case.upper, np.inf), np.zeros_like(case.slots)
    tiles.find(case.counts, case.table, TILES, case.prior, upper, slots, LOST, 1e-4, 1.0, 1.0, slice(0, 90))
    np.testing.assert_allclose(upper, case.upper - 1e-3, rtol=1e-5)
    np.testing.assert_array_equal(slots, case.slots)


def test_too_many_tiles_are_left_to_others(case):
    counts = case.upper - 1e-3 > case.joint.max(axis=1) + LOST
    shares = [-(-counts[:, rows].sum(axis=1) // 8).sum() * 8 / counts[:, rows].size for rows in RUNS]
    assert 0.05 < max(shares) < 0.9
    assert case.found(few=max(shares) + 1e-3) is not None
    assert case.found(few=max(shares) - 1e-3) is None
    assert case.found(np.inf, most=0.9) is None


def test_usage_and_weights_are_those_of_all_cells(case, rng):
    q, _ = case.found()
    wanted = whole(q)
    np.testing.assert_allclose(q.sum(axis=0), wanted.sum(axis=0), rtol=1e-5)
    weights = rng.random(len(wanted))
    q.weigh(weights)
    np.testing.assert_allclose(whole(q), wanted * weights[:, None], rtol=1e-5)


@pytest.mark.parametrize("n_features", [1, 5, 20])
def test_tiles_are_painted_as_all_cells_are(case, rng, n_features):
    q, _ = case.found()
    counts = rng.integers(4, size=(len(case.counts), 2 * n_features)).astype(case.table.dtype)
    bags = DenseCounts(counts, n_features, OFFSETS, GRID)
    given, wanted = bags.canvas(counts), bags.canvas(counts)
    bags.paint(q, ENGINE, given)
    bags.paint(whole(q), ENGINE, wanted)
    np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)
