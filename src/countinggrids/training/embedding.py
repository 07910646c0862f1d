"""A first layout from the geometry of the bags (embedding start).

Bags of overlapping windows differ by how far apart the windows are. Distances between their histograms, summed along
nearest neighbors, therefore tell where the windows lie, up to a rotation, a reflection and a scale: Isomap, refined by
metric multidimensional scaling. A few angles and scales are painted as first grids, and compared after a short EM.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.spatial.distance import pdist, squareform

from countinggrids.backends import ThreadsBackend
from countinggrids.core import em, steps
from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import blocks
from countinggrids.core.protocols import Bags, Pool
from countinggrids.core.schedule import Schedule
from countinggrids.data.counts import coarsen
from countinggrids.data.table import Table
from countinggrids.training.initialization import downsampled
from countinggrids.training.loop import Observer, Start, run_em

N_LANDMARKS = 500
"""Largest number of bags that are embedded, and that candidates are trained on."""
FEWEST_BAGS = 16
"""Smallest number of bags in whose distances a layout is looked for."""
N_NEIGHBORS = 2
"""Neighbors of a bag in the graph whose paths are measured: so many for each axis of the grid, and for one more."""
FARTHEST = 0.95
"""Distance, of at most 1, from which a bag is no neighbor."""
RESIDUAL_VARIANCE, HOPELESS_VARIANCE = 0.15, 0.5
"""Largest variance of the distances that a layout may leave unexplained, and that Isomap may leave to be refined.

Windows of an image leave 1 to 10%, before and after; refining takes a third off others' at most.
"""
SMALLEST_EXTENT = 0.75
"""Smallest extent of a layout. Bags of one histogram, which differ by chance only, are nearer to each other."""
N_ANGLES = 16
"""Rotations of a layout that are compared; more axes take as many random ones."""
WEIGHTINGS = (0.0, -0.5)
"""Powers of the mean histogram by which features are weighted in distances: a rare one tells more about a place."""
SCALES = (0.8, 1.0, 1.2, 1.4, 1.6)
"""Windows between bags that have no feature in common; more than 1 because features recur all over an image."""
BETAS = (0.3, 1.0)
"""Inverse temperatures at which the best layouts start on the full grid; the lower one lets bags move farther."""
SEARCH_WIDTH = 8
"""Cells of a window on the grid on which angles and scales are compared."""
ROUNDS = ((5, 12), (15, 3))
"""Iterations of each candidate, and how many of them go on, round by round."""
REFLECTING = (15, 3)
"""The same for reflections, on the full grid."""


class Layout(NamedTuple):
    """Bags placed relative to each other.

    Attributes
    ----------
    places : ndarray of shape (n_landmarks, n_axes)
        Places around the origin; the unit is the distance of bags that have no feature in common.
    residual_variance : float
        Variance of the distances along the neighbors that distances between the places do not explain.
    extent : float
        Largest distance along the neighbors.
    is_connected : bool
        Whether paths along the neighbors connect all bags.
    """

    places: Array
    residual_variance: float
    extent: float
    is_connected: bool

    @property
    def is_scene(self) -> bool:
        """Whether the bags have the geometry of overlapping windows."""
        is_large = self.extent >= SMALLEST_EXTENT
        return self.is_connected and is_large and self.residual_variance <= RESIDUAL_VARIANCE


class Landmarks(NamedTuple):
    """The bags that are embedded, all different: their counts, and the weights of all bags that are like them."""

    counts: Any
    weights: Array


def landmarks(table: Table, weights: Array) -> Landmarks:
    """Draw the bags to be embedded, always the same ones, among those with tokens and weight.

    A bag that is there twice is embedded once with twice the weight, and the order does not depend on that of the
    table: weights are equivalent to repeated bags.
    """
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(weights * table.tokens))[:N_LANDMARKS]
    rows = np.sort(drawn)
    counts = table.take(rows)
    groups: dict[bytes, list[int]] = {}
    for number in range(len(rows)):
        groups.setdefault(_content(counts[[number]]), []).append(number)
    alike = [groups[content] for content in sorted(groups)]
    totals = [weights[rows[numbers]].sum(dtype=np.float64) for numbers in alike]
    return Landmarks(counts[[numbers[0] for numbers in alike]], np.array(totals, weights.dtype))


def _content(bag: Any) -> bytes:
    """Return the bytes that tell a bag, a table of one row, from another."""
    return bag.indices.astype(np.int64).tobytes() + bag.data.tobytes() if sp.issparse(bag) else bag.tobytes()


def layout_of(counts: Any, n_axes: int, weighting: float = 0.0) -> Layout:
    """Place bags by their distances.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (n_landmarks, n_features)
        Bags without sections, none of them empty.
    n_axes : int
        Number of axes of the grid.
    weighting : float, default=0.0
        Power of the mean histogram by which features are weighted.

    Returns
    -------
    layout : Layout
        The places.
    """
    from sklearn.decomposition import KernelPCA

    paths, is_connected = _paths(_total_variation(counts, weighting), N_NEIGHBORS * (n_axes + 1))
    start = KernelPCA(n_axes, kernel="precomputed").fit_transform(-0.5 * paths**2)
    places = np.pad(start, [(0, 0), (0, n_axes - start.shape[1])])
    residual = _residual_variance(places, paths)
    if residual <= HOPELESS_VARIANCE:
        from sklearn.manifold import smacof

        places, _ = smacof(paths, n_components=n_axes, init=places, n_init=1, normalized_stress=False)
        residual = _residual_variance(places, paths)
    return Layout(places - places.mean(axis=0), residual, float(paths.max()), is_connected)


def _residual_variance(places: Array, distances: Array) -> float:
    """Compute the variance of the distances that those between the places do not explain."""
    explained = np.corrcoef(pdist(places), squareform(distances, checks=False))[0, 1] ** 2
    return 1 - float(np.nan_to_num(explained))


def _paths(distances: Array, n_neighbors: int) -> tuple[Array, bool]:
    """Measure the shortest paths along nearest neighbors; return them, and whether neighbors connect all bags.

    A bag that has next to nothing in common with another one may be anywhere, and is no neighbor. Parts that are not
    connected are joined by a minimum spanning tree.
    """
    lengths = np.maximum(distances, 1e-9)  # zero is no edge
    np.fill_diagonal(lengths, 0)
    nearest = np.argsort(lengths, axis=1, kind="stable")[:, 1 : n_neighbors + 1]
    graph = np.zeros_like(lengths)
    rows = np.arange(len(lengths))[:, None]
    graph[rows, nearest] = np.where(lengths[rows, nearest] < FARTHEST, lengths[rows, nearest], 0)
    graph = np.maximum(graph, graph.T)
    is_connected = bool(csgraph.connected_components(sp.csr_array(graph))[0] == 1)
    tree = csgraph.minimum_spanning_tree(lengths).toarray()
    return csgraph.shortest_path(np.maximum(graph, tree), directed=False), is_connected


def _total_variation(counts: Any, weighting: float) -> Array:
    """Compute half of the L1 distances between histograms of weighted features, (n_bags, n_bags)."""
    from sklearn.metrics.pairwise import manhattan_distances
    from sklearn.preprocessing import normalize

    totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    weights = np.maximum(totals, totals[totals > 0].min()) ** weighting
    histograms = normalize(counts.astype(np.float64) * weights, norm="l1")
    if sp.issparse(histograms):  # scikit-learn reads 32-bit indices only
        parts = (histograms.data, histograms.indices.astype(np.int32), histograms.indptr.astype(np.int32))
        histograms = sp.csr_array(parts, shape=histograms.shape)
    return np.round(manhattan_distances(histograms) / 2, 9)  # ties do not depend on the order of sums


def rotations(n_axes: int) -> Array:
    """Return rotations of a layout, (n_rotations, n_axes, n_axes); those that reflections lead to are left out."""
    if n_axes == 1:
        return np.ones((1, 1, 1))
    if n_axes > 2:
        from scipy.stats import ortho_group

        return ortho_group.rvs(n_axes, size=N_ANGLES, random_state=0)
    angles = np.arange(N_ANGLES) * np.pi / N_ANGLES
    cos, sin = np.cos(angles), np.sin(angles)
    return np.moveaxis(np.array([[cos, -sin], [sin, cos]]), -1, 0)


def reflections(geometry: Geometry) -> Iterator[Array]:
    """Yield the signs of the axes that bags can tell apart: one for bags without sections, otherwise all."""
    signs = (1, -1) if any(n > 1 for n in geometry.painted) else (1,)
    yield from map(np.array, itertools.product(signs, repeat=len(geometry.grid)))


def painted(bags: Bags, places: Array, geometry: Geometry, eta: Array, location_prior: str, pool: Pool) -> Grid:
    """Return the grid that one M step makes of bags at given places, each spread over its window.

    Parameters
    ----------
    bags : Bags
        The bags.
    places : ndarray of shape (n_bags, n_axes)
        Corners of their windows, anywhere on the torus.
    geometry : Geometry
        Grid, window and sections.
    eta : ndarray of shape (n_features,)
        Pseudocounts.
    location_prior : {"smoothed", "exact", "uniform"}
        How the prior over windows is estimated.
    pool : Pool
        Runs pieces of the work.

    Returns
    -------
    grid : Grid
        The first grid.
    """
    corners = np.mod(np.round(places).astype(np.int64), geometry.grid)
    cells = np.ravel_multi_index(tuple(corners.T), geometry.grid)
    flat = np.full((len(eta), *geometry.grid), geometry.groups / len(eta), bags.weights.dtype)
    canvas, usage = bags.painted.canvas(flat), np.zeros(geometry.n_cells)
    for rows in blocks(bags, geometry, pool):
        block = bags.rows(rows)
        q = np.zeros((len(block.weights), geometry.n_cells), flat.dtype)
        q[np.arange(len(q)), cells[rows]] = block.weights
        block.painted.paint(q, canvas, pool)
        usage += q.sum(axis=0, dtype=np.float64)
    statistics = Statistics(bags.painted.planes(canvas), usage.reshape(geometry.grid), 0.0)
    first = Grid(flat, np.zeros(geometry.grid, flat.dtype), steps.of(geometry).first_extra(geometry))
    return em.m_step(first, statistics, geometry, eta, location_prior, pool)


class Candidate(NamedTuple):
    """A layout turned and scaled: its places, the grid painted there, where it starts, and how well it ended."""

    places: Array
    grid: Grid
    beta: float
    log_likelihood: float


@dataclass
class EmbeddingStart:
    """First grids painted from a layout, compared after a short EM.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (n_landmarks, n_sections * n_features)
        The bags of the layout.
    weights : ndarray of shape (n_landmarks,)
        Weights of these bags.
    n_features : int
        Number of features.
    geometry : Geometry
        Grid, window and sections of the model.
    schedule : Schedule
        Its pseudocounts and its location prior are used.
    observer : callable
        Called after every iteration.
    """

    counts: Any
    weights: Array
    n_features: int
    geometry: Geometry
    schedule: Schedule
    observer: Observer

    def best(self, layouts: list[Layout]) -> Candidate:
        """Compare angles and scales on a small grid without sections, then reflections of the best on the full grid."""
        ones = (1,) * len(self.geometry.grid)
        plain = self.geometry.undivided()
        small = downsampled(plain, SEARCH_WIDTH) or plain
        whole = coarsen(self.counts, self.n_features, self.geometry.painted, ones)
        every = itertools.product(layouts, rotations(len(ones)), SCALES)
        turned = [scale * layout.places @ turn for layout, turn, scale in every]
        for n_iterations, n_kept in ROUNDS:
            turned = self._kept(whole, turned, small, n_iterations, n_kept)
        signs = list(reflections(self.geometry))
        if len(signs) > 1:
            reflected = [sign * places for places in turned for sign in signs]
            turned = self._kept(self.counts, reflected, self.geometry, *REFLECTING)
        return self._ranked(self.counts, turned, self.geometry, self.schedule, BETAS)[0]

    def _kept(self, counts: Any, layouts: list[Array], geometry: Geometry, n_iterations: int, n: int) -> list[Array]:
        """Return the best layouts after some iterations."""
        ranked = self._ranked(counts, layouts, geometry, self.schedule.for_comparing(n_iterations), (1.0,))
        return [each.places for each in ranked[:n]]

    def log_likelihood(self, grid: Grid) -> float:
        """Compute the log-likelihood of the bags of the layout."""
        backend = ThreadsBackend()
        return backend.e_step(self._chunks(self.counts, self.geometry), grid, self.geometry, 1.0).log_likelihood

    def _chunks(self, counts: Any, geometry: Geometry) -> list[Bags]:
        return list(ThreadsBackend().prepare(Table.of(counts), self.weights, self.n_features, geometry))

    def _ranked(
        self, counts: Any, layouts: list[Array], geometry: Geometry, how: Schedule, betas: tuple[float, ...]
    ) -> list[Candidate]:
        """Train grids from several layouts and inverse temperatures; return the best first.

        They are compared by their log-likelihoods: the prior of pi favors layouts that leave many cells empty.
        """
        backend, chunks = ThreadsBackend(), self._chunks(counts, geometry)
        candidates = []
        for places, beta in itertools.product(layouts, betas):
            start = self._painted(chunks, places, geometry, backend.pool)
            rest = how.for_settling(beta)
            result = run_em(chunks, Start.of(start), geometry, rest, backend, self.observer)
            reached = backend.e_step(chunks, result.grid, geometry, 1.0).log_likelihood
            candidates.append(Candidate(places, start, beta, reached))
        return sorted(candidates, key=lambda each: -each.log_likelihood)

    def _painted(self, chunks: list[Bags], places: Array, geometry: Geometry, pool: Pool) -> Grid:
        [bags] = chunks
        totals = np.asarray(self.weights @ self.counts, dtype=np.float64).reshape(-1, self.n_features).sum(axis=0)
        eta = self.schedule.settled.of(totals, geometry.n_cells)
        return painted(bags, places * geometry.window, geometry, eta, self.schedule.location_prior, pool)
