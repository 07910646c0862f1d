"""Clusters and their items as tables."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countinggrids.data.collection import Collection
from countinggrids.meta.map_tables import data_frame, rows_of
from countinggrids.meta.posteriors import sparse_posteriors

N_REPRESENTATIVES = 5


def items(clusters: Any, collection: Collection) -> Any:
    """Return the cluster of each item as a DataFrame; see `GridClusters.items`."""
    return data_frame(item_columns(clusters, collection))


def item_columns(clusters: Any, collection: Collection) -> dict[str, Any]:
    """Return the columns of the table of items.

    Parameters
    ----------
    clusters : GridClusters
        Fitted clusters.
    collection : Collection
        The items.

    Returns
    -------
    columns : dict of str to ndarray
        Values by name.
    """
    check_is_fitted(clusters)
    model = clusters.model_
    posteriors = sparse_posteriors(model, collection.for_model(model).counts)
    peaks = posteriors.indptr[:-1]
    cells = posteriors.indices[peaks]
    grid = model.geometry_.grid
    places = np.unravel_index(cells, grid)
    names = ("map_row", "map_column") if len(grid) == 2 else tuple(f"map_{axis}" for axis in range(len(grid)))
    placed = {"row": rows_of(collection)} | dict(zip(names, places, strict=True))
    placed |= {"posterior": posteriors.data[peaks], "cluster": clusters.regions_.ravel()[cells]}
    return placed | {name: collection.items[name] for name in collection.items.columns if name not in placed}


def summary(clusters: Any, collection: Collection, n: int) -> Any:
    """Return the clusters as a DataFrame; see `GridClusters.summary`."""
    columns = item_columns(clusters, collection)
    labels = columns["label"] if "label" in columns else np.array([""] * len(collection))
    known = sorted(set(labels.tolist()) - {""})
    words = clusters.features(collection.vocabulary.names, n)
    rows: dict[str, list[Any]] = {"n_items": [], "words": words, "representatives": []}
    rows |= {f"share {label}": [] for label in known}
    for cluster in range(clusters.n_clusters_):
        inside = np.flatnonzero(columns["cluster"] == cluster)
        best = inside[np.argsort(-columns["posterior"][inside], kind="stable")[:N_REPRESENTATIVES]]
        rows["n_items"].append(len(inside))
        rows["representatives"].append(columns["row"][best].tolist())
        for label in known:
            rows[f"share {label}"].append(float((labels[inside] == label).mean()) if len(inside) else 0.0)
    return data_frame(rows).rename_axis("cluster")
