"""A bounded random sample of a stream, and k-means on it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from countinggrids.features.stream import Stream

BLOCK = 2**14  # vectors compared with all centres at a time
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
    """Draw rows at random from the results of a stream; all are equally likely, and only a quarter more are ever held.

    Parameters
    ----------
    stream : where they come from; of a long list `n_images` items chosen at random are looked at
    rows_of : tells how many rows a result has
    take : gives chosen rows of a result, as several arrays that belong together
    n_samples : how many rows at the most
    n_images : how many items are looked at; a generator is gone through to its end
    random_state : seed
    """
    if n_samples < 1 or n_images < 1:
        raise ValueError(f"n_samples is {n_samples} and n_images {n_images}; wanted at least 1 of each")
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
            f"found no features at all, {len(stream.skipped)} items skipped{first}; wanted at least one to learn from"
        )
    return _smallest(kept, n_samples)[1:]


def _smallest(parts: list[Rows], n: int) -> Rows:
    """Join parts and keep the rows with the n smallest keys, in their order."""
    joined = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if len(joined[0]) <= n:
        return joined
    chosen = np.sort(np.argpartition(joined[0], n)[:n])
    return tuple(array[chosen] for array in joined)


def k_means(vectors: Array, n_clusters: int, max_iter: int, random_state: Any) -> Array:
    """Give the centres of clusters, (clusters, dimensions), float32.

    On one thread: with several, scikit-learn adds up in whatever order they finish, and the last digits change.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if n_clusters < 1:
        raise ValueError(f"got {n_clusters} clusters to find; wanted at least 1; give for instance 200")
    if len(vectors) < n_clusters:
        raise ValueError(
            f"got {len(vectors)} vectors for {n_clusters} clusters; wanted at least one for each; "
            "give more images or ask for fewer clusters"
        )
    with threadpool_limits(1):
        found = KMeans(n_clusters, n_init=1, max_iter=max_iter, random_state=random_state).fit(vectors)
    return found.cluster_centers_.astype(np.float32)


def nearest(vectors: Array, centres: Array) -> NDArray[np.int32]:
    """Give the nearest centre of every vector."""
    half = (centres**2).sum(axis=1) / 2
    starts = range(0, len(vectors), BLOCK)
    return np.concatenate([(half - vectors[i : i + BLOCK] @ centres.T).argmin(axis=1) for i in starts]).astype(np.int32)
