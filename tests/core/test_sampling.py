import numpy as np
import pytest

from countinggrids.core import em, sampling
from countinggrids.core.elastic import ElasticGeometry
from countinggrids.core.geometry import Geometry


def own_features(grid):
    """Return the pi of a grid in which each cell has a feature of its own."""
    n_cells = int(np.prod(grid))
    return np.eye(n_cells).reshape(n_cells, *grid)


def uniform(grid):
    return np.full(grid, -np.log(np.prod(grid)))


@pytest.fixture
def random():
    return np.random.RandomState(0)


def test_tokens_of_a_section_come_from_its_cells_of_the_window(random):
    geometry = Geometry.of((5, 6), (4, 2), (2, 2))
    grid = em.Grid(own_features((5, 6)), uniform((5, 6)))
    counts, cells = sampling.draw(grid, geometry, 40, 50, random)
    of_sections = counts.toarray().reshape(40, 4, 5, 6)
    for bag, cell in zip(of_sections, cells, strict=True):
        row, column = divmod(int(cell), 6)
        for section, (down, right) in enumerate([(0, 0), (0, 1), (2, 0), (2, 1)]):
            inside = np.zeros((5, 6), bool)
            inside[np.ix_([(row + down) % 5, (row + down + 1) % 5], [(column + right) % 6])] = True
            assert bag[section][~inside].sum() == 0
            assert (bag[section][inside] > 0).all()


def test_tokens_are_shared_evenly_by_the_sections(random):
    geometry = Geometry.of((5, 6), (4, 2), (2, 2))
    counts, _ = sampling.draw(em.Grid(own_features((5, 6)), uniform((5, 6))), geometry, 60, 10, random)
    tokens = counts.toarray().reshape(60, 4, 30).sum(axis=2)
    np.testing.assert_array_equal(np.sort(tokens, axis=1), np.tile([2, 2, 3, 3], (60, 1)))
    assert (tokens == 3).any(axis=0).all()


def test_windows_are_drawn_by_the_prior_and_features_by_histograms(random):
    pi = np.random.default_rng(1).dirichlet(np.ones(4), (3, 4))
    pi = np.moveaxis(pi, -1, 0)
    prior = np.zeros((3, 4))
    prior[0, 1], prior[2, 3] = 0.25, 0.75
    with np.errstate(divide="ignore"):
        grid = em.Grid(pi, np.log(prior))
    counts, cells = sampling.draw(grid, Geometry.of((3, 4), (2, 2)), 4000, 5, random)
    assert set(cells) == {1, 11}
    assert np.mean(cells == 1) == pytest.approx(0.25, abs=0.03)
    h = pi[:, [2, 2, 0, 0], [3, 0, 3, 0]].mean(axis=1)
    np.testing.assert_allclose(counts.toarray()[cells == 11].mean(axis=0) / 5, h, atol=0.02)


def test_sections_that_slip_are_drawn_where_they_slip_to(random):
    geometry = Geometry.of((6,), (4,), (2,))
    slips = np.tile([[[1], [-1]]], (20, 1, 1))
    counts, cells = sampling.draw(em.Grid(own_features((6,)), uniform((6,))), geometry, 20, 40, random, slips)
    for bag, cell in zip(counts.toarray().reshape(20, 2, 6), cells, strict=True):
        assert set(np.flatnonzero(bag[0])) == {(cell + 1) % 6, (cell + 2) % 6}
        assert set(np.flatnonzero(bag[1])) == {(cell + 1) % 6, (cell + 2) % 6}


def test_slips_are_drawn_by_their_probabilities(random):
    geometry = ElasticGeometry.with_slack(Geometry.of((8,), (4,), (2,)), (1,))
    slip = np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    slips = sampling.draw_slips(slip, geometry, 400, random)
    assert slips.shape == (400, 2, 1)
    assert (slips[:, 0] == 1).all()
    assert set(slips[:, 1, 0]) == {-1, 0}
    assert np.mean(slips[:, 1] == -1) == pytest.approx(0.5, abs=0.1)


def test_mixtures_have_several_windows_and_tokens_in_every_section(random):
    geometry = Geometry.of((4, 4), (2, 1), (2, 1))
    grid = em.Grid(own_features((4, 4)), uniform((4, 4)), np.array([1e6]))
    counts, _ = sampling.draw_mixtures(grid, geometry, 5, 21, random)
    tokens = counts.toarray().reshape(5, 2, 16)
    np.testing.assert_array_equal(tokens.sum(axis=2), np.tile([11, 10], (5, 1)))
    assert (np.count_nonzero(tokens, axis=2) > 4).all()


def test_a_mixture_of_one_window_comes_from_that_window(random):
    geometry = Geometry.of((4, 4), (2, 1), (2, 1))
    grid = em.Grid(own_features((4, 4)), uniform((4, 4)), np.array([0.0]))
    counts, main = sampling.draw_mixtures(grid, geometry, 30, 9, random)
    for bag, cell in zip(counts.toarray().reshape(30, 2, 16), main, strict=True):
        row, column = divmod(int(np.flatnonzero(bag[0])[0]), 4)
        assert bag[0].max() == 5
        assert bag[1][(row + 1) % 4 * 4 + column] == 4
        assert cell == row * 4 + column
