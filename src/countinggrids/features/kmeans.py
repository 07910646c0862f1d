"""A bounded random sample of a stream, and k-means on it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from countinggrids.features.stream import Stream

BLOCK = 2**14
"""Vectors compared with all centers at a time."""
Array = NDArray[Any]
Rows = tuple[Array, ...]


def gather(
    stream: Stream,
    rows_of: Callable[[Any], int],
    take: Callable[[Any, Array], Rows],
    n_samples: int,
    n_images: int,
    random_state: Any,
) -> Rows:
    """Draw a uniform random sample of the rows of the results of a stream, in bounded memory.

    Parameters
    ----------
    stream : Stream
        Its results have rows.
    rows_of : callable
        Returns the number of rows of a result.
    take : callable
        Returns some rows of a result, as a tuple of arrays of equal length.
    n_samples : int
        Largest number of rows; a quarter more are held while sampling.
    n_images : int
        Number of items, drawn at random from a list; a generator is read to its end.
    random_state : int, RandomState or None
        Random numbers.

    Returns
    -------
    sample : tuple of ndarray
        The arrays of `take`, concatenated.
    """
    if n_samples < 1 or n_images < 1:
        raise ValueError(f"n_samples={n_samples} and n_images={n_images} must be at least 1; use for instance 1000.")
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    if hasattr(stream.source, "__getitem__") and len(stream) > n_images:
        stream = stream.subset(sorted(rng.choice(len(stream), n_images, replace=False).tolist()))
    kept: list[Rows] = []
    held, bound = 0, 1.0
    for result in stream:
        keys = rng.random(rows_of(result))
        places = np.flatnonzero(keys < bound)
        if not places.size:
            continue
        kept.append((keys[places], *take(result, places)))
        held += places.size
        if held > 1.25 * n_samples:
            kept = [_smallest(kept, n_samples)]
            held, bound = n_samples, kept[0][0].max()
    if not kept:
        first = f" (the first: {stream.skipped[0].reason})" if stream.skipped else ""
        raise ValueError(
            f"the images have no features, and {len(stream.skipped)} were skipped{first}; "
            "expected at least one feature; check the images."
        )
    return _smallest(kept, n_samples)[1:]


def _smallest(parts: list[Rows], n: int) -> Rows:
    """Concatenate parts and keep the rows with the n smallest keys, in their order."""
    joined = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if len(joined[0]) <= n:
        return joined
    chosen = np.sort(np.argpartition(joined[0], n)[:n])
    return tuple(array[chosen] for array in joined)


def k_means(vectors: Array, n_clusters: int, max_iter: int, random_state: Any) -> Array:
    """Compute the centers of clusters, on one thread: with several, the last digits would not be reproducible.

    Parameters
    ----------
    vectors : ndarray of shape (n_vectors, n_dimensions)
        The vectors.
    n_clusters : int
        Number of clusters.
    max_iter : int
        Largest number of iterations.
    random_state : int, RandomState or None
        Random numbers.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_dimensions)
        Centers, float32.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if n_clusters < 1:
        raise ValueError(f"n_clusters={n_clusters} must be at least 1; use for instance 200.")
    if len(vectors) < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} must be at most the number of vectors, {len(vectors)}; "
            "use more images or fewer clusters."
        )
    with threadpool_limits(1):
        found = KMeans(n_clusters, n_init=1, max_iter=max_iter, random_state=random_state).fit(vectors)
    return found.cluster_centers_.astype(np.float32)


def nearest(vectors: Array, centers: Array) -> NDArray[np.int32]:
    """Return the index of the nearest center of every vector."""
    half = (centers**2).sum(axis=1) / 2
    starts = range(0, len(vectors), BLOCK)
    return np.concatenate([(half - vectors[i : i + BLOCK] @ centers.T).argmin(axis=1) for i in starts]).astype(np.int32)


def squared_distances(vectors: Array, centers: Array) -> Array:
    """Return the squared distance of every vector to every center, (n_vectors, n_centers), at least 0."""
    products = vectors @ centers.T
    distances = (vectors**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1) - 2 * products
    return np.maximum(distances, 0)
