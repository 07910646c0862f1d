"""The embedding start: bags of overlapping windows tell their places by their distances."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import procrustes

import countinggrids as cg
from cases import POOL, as_bags
from countinggrids.core.alignment import align
from countinggrids.core.geometry import Geometry
from countinggrids.core.schedule import Pseudocounts
from countinggrids.data.table import Table
from countinggrids.training import embedding


def scene_of(shape, n_colors=120, seed=0):
    """Draw a scene of random patches, so that neighboring cells often have the same color."""
    rng = np.random.default_rng(seed)
    small = rng.integers(n_colors, size=[-(-n // 2) for n in shape])
    for axis in range(len(shape)):
        small = np.repeat(small, 2, axis=axis)
    return small[tuple(slice(n) for n in shape)]


def windows_of(scene, window, n_bags, sections=None, seed=0):
    rng = np.random.default_rng(seed)
    corners = np.stack([rng.integers(0, n - window + 1, n_bags) for n in scene.shape], axis=1)
    maps = [scene[tuple(slice(k, k + window) for k in corner)] for corner in corners]
    return corners, cg.bag(maps, sections, scene.max() + 1)


@pytest.mark.parametrize("shape", [(90,), (24, 30), (12, 13, 14)])
@pytest.mark.parametrize("weighting", embedding.WEIGHTINGS)
def test_windows_are_placed_by_their_distances(shape, weighting):
    corners, X = windows_of(scene_of(shape), 10 if len(shape) < 3 else 6, 120)
    _, once = np.unique(X.toarray(), axis=0, return_index=True)
    corners, layout = corners[once], embedding.layout_of(X[once], len(shape), weighting)
    assert layout.is_scene
    # SciPy compares at least two columns.
    known, found = (np.pad(places.astype(float), [(0, 0), (0, 1)]) for places in (corners, layout.places))
    assert procrustes(known, found)[2] < 0.1


def test_unrelated_bags_have_no_layout(rng):
    X = rng.multinomial(100, np.full(30, 1 / 30), 60)
    assert not embedding.layout_of(X, 2).is_scene


def test_bags_of_few_kinds_have_no_layout(rng):
    kinds = rng.dirichlet(np.full(12, 0.3), 4)
    assert not embedding.layout_of(np.vstack([rng.multinomial(30, kind, 15) for kind in kinds]), 2).is_scene
    assert not embedding.layout_of(rng.multinomial(40, [0.5, 0.3, 0.2], 50), 2).is_scene


def test_bags_that_are_equal_or_share_nothing_can_be_placed():
    X = np.kron(np.eye(2), np.ones((12, 3)))
    assert np.isfinite(embedding.layout_of(X, 2).places).all()


def test_sparse_and_dense_bags_have_the_same_layout():
    _, X = windows_of(scene_of((20, 20)), 8, 30)
    dense, sparse = embedding.layout_of(X.toarray(), 2, -0.5), embedding.layout_of(sp.csr_array(X), 2, -0.5)
    np.testing.assert_allclose(dense.places, sparse.places, atol=1e-6)


def test_bags_without_tokens_or_weight_are_not_placed(monkeypatch):
    monkeypatch.setattr(embedding, "N_LANDMARKS", 3)
    table = Table.of(np.array([[1, 1], [0, 0], [2, 0], [0, 3], [4, 4], [1, 0]], "f4"))
    counts, weights = embedding.landmarks(table, np.array([1, 1, 0, 1, 1, 1]))
    assert len(counts) == 3
    assert {tuple(bag) for bag in counts} <= {(1, 1), (0, 3), (4, 4), (1, 0)}
    assert (weights == 1).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_bag_that_is_there_twice_is_one_landmark_of_twice_the_weight(rng, form):
    bags = np.array([[1, 1, 0], [0, 2, 1], [3, 0, 0]], "f4")
    repeated = np.repeat(bags, [2, 1, 3], axis=0)
    order = rng.permutation(6)
    once = embedding.landmarks(Table.of(form(bags)), np.array([2.0, 1.0, 3.0]))
    twice = embedding.landmarks(Table.of(form(repeated[order])), np.ones(6))
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a.toarray() if sp.issparse(a) else a, b.toarray() if sp.issparse(b) else b)


@pytest.mark.parametrize("geometry", [Geometry.of((5, 6), (3, 2)), Geometry.of((6, 5), (2, 4), (2, 2))])
def test_a_grid_is_painted_as_one_m_step_from_known_places(rng, geometry):
    counts = rng.integers(0, 4, (7, geometry.n_column_sections * 3)).astype(float)
    places = rng.integers(-9, 9, (7, 2))
    eta = np.array([0.1, 0.2, 0.3])
    bags = as_bags(counts, geometry)._replace(weights=np.arange(1.0, 8.0))
    pi = np.moveaxis(embedding.painted(bags, places + 0.2, geometry, eta, "uniform", POOL).pi, 0, -1)
    expected = np.zeros((*geometry.grid, 3)) + eta
    block = geometry.block(painted=True)
    for bag, place, weight in zip(counts.reshape(7, -1, 3), places, bags.weights, strict=True):
        for part, offset in zip(bag, geometry.painted_offsets, strict=True):
            for step in np.ndindex(*block):
                cell = tuple((place + offset + step) % geometry.grid)
                expected[cell] += weight * part / np.prod(block)
    np.testing.assert_allclose(pi, expected / expected.sum(axis=-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_rotations_keep_distances(n_axes):
    turns = embedding.rotations(n_axes)
    np.testing.assert_allclose(turns @ turns.swapaxes(1, 2), np.broadcast_to(np.eye(n_axes), turns.shape), atol=1e-12)


def test_reflections_matter_to_bags_with_sections_only():
    assert len(list(embedding.reflections(Geometry.of((8, 8), 4)))) == 1
    assert len(list(embedding.reflections(Geometry.of((8, 8), 4, 1, 4)))) == 4


@pytest.mark.parametrize("sections", [None, (2, 2)])
def test_a_scene_is_put_back_from_its_windows(sections):
    corners, X = windows_of(scene_of((14, 16)), 8, 40, sections)
    model = cg.CountingGrid((18, 20), 8, sections, init="embedding", random_state=0).fit(X)
    assert align(model.locate(X), corners, (18, 20), has_symmetries=sections is None).is_correct.mean() >= 0.8


def test_windows_along_a_line_are_put_back():
    corners, X = windows_of(scene_of((80,), 300), 10, 60)
    model = cg.CountingGrid((96,), 10, init="embedding", tol=1e-4, random_state=0).fit(X)
    assert align(model.locate(X), corners, (96,), has_symmetries=True).is_correct.mean() >= 0.8


def test_the_automatic_start_is_uniform_where_bags_have_no_layout(rng):
    X = rng.multinomial(60, rng.dirichlet(np.ones(12)), 40)
    automatic, uniform = (cg.CountingGrid((8, 8), 2, init=init, random_state=0).fit(X) for init in ("auto", "uniform"))
    assert automatic.pi_.tobytes() == uniform.pi_.tobytes()


def test_the_embedding_can_be_asked_for_and_refused():
    _, X = windows_of(scene_of((16, 18)), 8, 40)
    stages = {}
    for init in ("embedding", "uniform"):
        seen = stages.setdefault(init, [])
        model = cg.CountingGrid((20, 22), 8, init=init, random_state=0, max_iter=40, tol=1e-3)
        model.fit(X, callback=lambda now, seen=seen: seen.append((now.stage, now.beta)))
    learning = {init: [beta for stage, beta in seen if stage == "learning"] for init, seen in stages.items()}
    assert learning["embedding"][0] in embedding.BETAS
    assert learning["uniform"][0] < min(embedding.BETAS)


def test_even_pseudocounts_are_the_same_for_all_features():
    totals = np.array([10.0, 30.0, 0.0, 60.0])
    np.testing.assert_allclose(Pseudocounts(None, 0.2, is_even=True).of(totals, 5), 0.2 * 100 / 5 / 4)
