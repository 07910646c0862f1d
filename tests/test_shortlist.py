"""Bounds change nothing but the time: with them, without them, and against all cells."""

import copy
from itertools import product

import numpy as np
import pytest

import countinggrids as cg
from cases import ENGINE, as_bags, random_grid
from countinggrids import em, posterior, products, shortlist, tiles
from countinggrids.engine import Threads
from countinggrids.geometry import Geometry
from countinggrids.shortlist import Bounds, Search, Shortlist, Windows

N_FEATURES = 5
LARGER = {
    "1 axis": Geometry.of(70, 6),
    "2 axes": Geometry.of((17, 14), (4, 4)),
    "3 axes": Geometry.of((7, 8, 5), (3, 2, 2)),
    "4 axes": Geometry.of((5, 4, 3, 5), (2, 2, 1, 2)),
    "tessellated": Geometry.of((17, 14), (4, 4), (2, 2)),
    "hybrid": Geometry.of((17, 14), (4, 4), (2, 1), (4, 2)),
    "groups": Geometry((300,), (1,), (1,), (1,), groups=4),
}


@pytest.fixture(autouse=True)
def always_search(monkeypatch):
    monkeypatch.setattr(shortlist, "WORTHWHILE", 0)
    monkeypatch.setattr(posterior, "FEW_ENTRIES", 0)
    monkeypatch.setattr(products, "WORTH_COMPILING", 0)


def sharp_bags(rng, geometry, dtype, n_bags=120):
    """Bags of many tokens, whose posteriors are sharp."""
    columns = geometry.n_column_sections * N_FEATURES
    counts = rng.multinomial(2000, rng.dirichlet(np.ones(columns)), n_bags)
    counts[1] = rng.multinomial(3000, rng.dirichlet(np.full(columns, 0.3)))
    return as_bags(counts * rng.integers(1, 5, (n_bags, 1)), geometry, dtype=dtype)


def iterations(bags, grid, geometry, n=8, engine=ENGINE):
    """Learn, and give what each iteration has seen."""
    for _ in range(n):
        statistics = em.e_step([bags], grid, geometry, 1.0, engine)
        grid, _ = em.m_step(grid, statistics, geometry, np.full(len(grid.pi), 0.1), "smoothed", engine)
        yield statistics, grid


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", LARGER)
def test_bounds_change_no_bit(rng, kind, dtype):
    geometry = LARGER[kind]
    grid = random_grid(rng, geometry, N_FEATURES, dtype)
    bags = sharp_bags(rng, geometry, dtype)
    kept = bags._replace(shortlist=Shortlist())
    pairs = zip(iterations(kept, grid, geometry), iterations(bags, grid, geometry), strict=True)
    for (ours, mine), (theirs, their) in pairs:
        np.testing.assert_array_equal(ours.seen, theirs.seen)
        np.testing.assert_array_equal(mine.log_prior, their.log_prior)
        assert ours.log_likelihood == theirs.log_likelihood


@pytest.mark.parametrize("seed", range(8))
def test_bounds_change_no_bit_where_tiles_are_just_few_enough(monkeypatch, seed):
    """Bags of so many tokens that rounding leaves wide margins, at the beta at which the few tiles become many."""
    rng, geometry, found = np.random.default_rng(seed), Geometry.of((12, 12), 3), []
    find = tiles.find
    monkeypatch.setattr(tiles, "find", lambda *given: found.append(find(*given)) or found[-1])
    base = rng.dirichlet(np.full(N_FEATURES, 20.0))
    pi = base[:, None, None] * np.exp(0.5 * rng.standard_normal((N_FEATURES, 12, 12)))
    grid = em.Grid((pi / pi.sum(axis=0)).astype("f4"), np.full((12, 12), -np.log(144), "f4"))
    bags = as_bags(rng.multinomial(100_000, base, 64), geometry, dtype="float32")
    many, few = 1e-4, 1.0
    for _ in range(12):
        beta = (many * few) ** 0.5
        found.clear()
        em.e_step([bags], grid, geometry, beta, ENGINE)
        many, few = (many, beta) if found and found[-1] else (beta, few)
    kept = bags._replace(shortlist=Shortlist())
    for beta in (few * (1 + 1e-5), many, few):
        ours, theirs = (em.e_step([each], grid, geometry, beta, ENGINE) for each in (kept, bags))
        np.testing.assert_array_equal(ours.seen, theirs.seen)
        assert ours.log_likelihood == theirs.log_likelihood


@pytest.mark.parametrize("kind", LARGER)
def test_threads_change_no_bit(rng, monkeypatch, kind):
    for limit in ("FEW_TILES", "MOST_TILES"):  # tile by tile however many there are
        monkeypatch.setattr(shortlist, limit, 2)
    geometry = LARGER[kind]
    grid, bags = random_grid(rng, geometry, N_FEATURES, "float32"), sharp_bags(rng, geometry, "float32")
    ends = set()
    for n_threads in (1, 2, 4):
        kept = bags._replace(shortlist=Shortlist())
        *_, (statistics, last) = iterations(kept, grid, geometry, 12, Threads(n_threads))
        ends.add((statistics.seen.tobytes(), last.pi.tobytes(), last.log_prior.tobytes()))
        assert kept.shortlist.take() is not None
    assert len(ends) == 1


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-10)])
@pytest.mark.parametrize("kind", LARGER)
def test_what_a_search_finds_is_what_matching_all_cells_gives(rng, monkeypatch, kind, dtype, tolerance):
    geometry = LARGER[kind]
    grid = random_grid(rng, geometry, N_FEATURES, dtype)
    bags = sharp_bags(rng, geometry, dtype)
    searched = [seen for seen, _ in iterations(bags._replace(shortlist=Shortlist()), grid, geometry)]
    monkeypatch.setattr(shortlist, "WORTHWHILE", np.inf)
    for ours, (theirs, _) in zip(searched, iterations(bags, grid, geometry), strict=True):
        np.testing.assert_allclose(ours.seen, theirs.seen, rtol=tolerance, atol=tolerance * theirs.seen.max())
        assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=tolerance)


@pytest.mark.parametrize("kind", LARGER)
def test_no_cell_exceeds_its_bound(rng, monkeypatch, kind):
    for limit in ("FEW_TILES", "MOST_TILES"):  # bounds are kept however many tiles are left
        monkeypatch.setattr(shortlist, limit, 2)
    geometry = LARGER[kind]
    grid = random_grid(rng, geometry, N_FEATURES)
    bags = sharp_bags(rng, geometry, "float64")._replace(shortlist=Shortlist())
    cells = tiles.tiles_of(geometry.grid, tuple(bags.matched.offsets)).cells
    n_known = 0
    for _ in range(6):
        windows, _ = em.windows_of(grid, geometry, 1.0, ENGINE)
        [(_, grid)] = iterations(bags, grid, geometry, 1)
        bounds, since = bags.shortlist.take()
        bags.shortlist.put(bounds, since)
        joint = np.empty((len(bags.weights), geometry.n_cells))
        bags.matched.match(bags.matched.prepare(windows.table), slice(None), joint)
        joint += windows.log_prior.ravel()
        highest = joint[:, cells].max(axis=2).T
        assert (bounds.upper >= highest - 1e-9 * abs(highest)).all()
        n_known += np.isfinite(bounds.upper).sum()
    assert n_known > 0


def test_bounds_spare_the_product_with_all_cells(rng, monkeypatch):
    geometry = LARGER["2 axes"]
    grid = random_grid(rng, geometry, N_FEATURES)
    bags = sharp_bags(rng, geometry, "float64")._replace(shortlist=Shortlist())
    *_, (_, grid) = iterations(bags, grid, geometry, 30)
    monkeypatch.setattr(products.DenseCounts, "match", lambda *_: pytest.fail("all cells were matched"))
    list(iterations(bags, grid, geometry, 2))


def test_a_flat_posterior_is_worked_out_from_all_cells(rng):
    geometry = LARGER["2 axes"]
    grid = random_grid(rng, geometry, N_FEATURES)
    bags = as_bags(rng.multinomial(3, np.full(N_FEATURES, 0.2), 20), geometry)._replace(shortlist=Shortlist())
    [(statistics, _)] = iterations(bags, grid, geometry, 1)
    assert bags.shortlist.take() is None
    assert (statistics.usage > 0).all()


def test_the_rise_is_the_largest_of_each_tile(rng):
    before, now = (Windows(rng.random((3, 5, 6)), rng.random((5, 6))) for _ in range(2))
    of_grid = tiles.tiles_of((5, 6), ((0, 0), (1, 2)))
    rise, of_prior = now.rise_since(before, of_grid)
    change = (now.table - before.table).reshape(3, 30)
    for tile in range(len(of_grid.cells)):
        assert of_prior[tile] == (now.log_prior - before.log_prior).ravel()[of_grid.cells[tile]].max()
        for section, feature in product(range(2), range(3)):
            wanted = change[feature, of_grid.places[section, tile]].max()
            assert rise[tile, 3 * section + feature] == wanted
    assert now.rise_since(before, of_grid)[0] is rise


def test_iterations_do_not_hold_those_before_them(rng):
    first, second, third = (Windows(rng.random((3, 5, 6)), rng.random((5, 6))) for _ in range(3))
    of_grid = tiles.tiles_of((5, 6), ((0, 0),))
    second.rise_since(first, of_grid)
    third.rise_since(second, of_grid)
    assert second._rise is None


def test_a_shortlist_gives_what_it_keeps_once_and_has_limits(rng):
    windows = Windows(rng.random((3, 5, 6)), rng.random((5, 6)))
    kept = Shortlist(room=12)
    few, many = (Bounds(np.ones((n, 3)), np.zeros(3, int)) for n in (4, 5))
    kept.put(few, windows)
    assert kept.take()[1] is windows
    assert kept.take() is None
    kept.put(many, windows)
    assert kept.take() is None
    kept.put(few, windows)
    assert copy.deepcopy(kept).take() is None  # as when it is sent to another process


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_table_on_disk_gives_the_bits_of_one_in_memory(rng, tmp_path):
    X = rng.multinomial(2000, rng.dirichlet(np.ones(N_FEATURES)), 60).astype("float32")
    np.save(tmp_path / "counts.npy", X)
    made = [
        cg.CountingGrid((9, 9), 3, anneal=None, max_iter=12, tol=0, random_state=0).fit(each)
        for each in (X, tmp_path / "counts.npy")
    ]
    np.testing.assert_array_equal(made[0].pi_, made[1].pi_)


def test_few_bags_and_large_tables_are_not_searched(rng, monkeypatch):
    geometry = LARGER["2 axes"]
    counts = sharp_bags(rng, geometry, "float64").matched
    windows, _ = em.windows_of(random_grid(rng, geometry, N_FEATURES), geometry, 1.0, ENGINE)
    assert Search.of(counts, windows, None) is not None
    monkeypatch.setattr(shortlist, "LARGEST_TABLE", counts.shape[1] * geometry.n_cells - 1)
    assert Search.of(counts, windows, None) is None
    monkeypatch.undo()
    assert Search.of(counts, windows, None) is None
