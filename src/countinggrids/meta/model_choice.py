"""Whether the items of a map should lie in one place each, or their words in several: by held-out words."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countinggrids.core import em
from countinggrids.data.collection import Collection
from countinggrids.models.componential import ComponentialGrid
from countinggrids.models.counting_grid import CountingGrid
from countinggrids.training import completion

N_ITEMS, FEWEST_ITEMS, HELD_OUT = 600, 60, 0.2
"""Items that are compared at most and at least, and the fraction of them that is held out."""
SIDE, WINDOW, COMPONENTIAL_WINDOW, MAX_ITER = 10, 3, 2, 40
"""Cells along each axis of the small grids and of their windows, and iterations."""
LEAST_GAIN = 0.05
"""Fraction by which several places must lower the perplexity, since a map with one place an item is easier to read."""
SMALLEST = 1e-30


class ModelChoice(NamedTuple):
    """Which model suits a collection, and why.

    Attributes
    ----------
    is_componential : bool
        Whether every word should have a place of its own.
    reason : str
        Why, for the log.
    """

    is_componential: bool
    reason: str


def choose_model(collection: Collection, seed: int) -> ModelChoice:
    """Choose between one place for each item and one for each word.

    Small grids of both kinds are fitted to some of the items. Half of the tokens of held-out items are predicted from
    the other half. Several places are chosen if they lower the perplexity by at least 5%.

    Parameters
    ----------
    collection : Collection
        The items.
    seed : int
        Seed of the sample and of the fits.

    Returns
    -------
    choice : ModelChoice
        The choice, and its reason.
    """
    if collection.vocabulary.kind != "words":
        return ModelChoice(False, "photos have one place each")
    tokens = np.asarray(collection.counts.sum(axis=1)).ravel()
    filled = np.flatnonzero(tokens > 1)
    if len(filled) < FEWEST_ITEMS:
        return ModelChoice(False, f"fewer than {FEWEST_ITEMS} items are too few to compare")
    rows = np.random.RandomState(seed).permutation(filled)[:N_ITEMS]
    n_held = int(HELD_OUT * len(rows))
    held, learned = (sp.csr_array(collection.counts[part]) for part in (rows[:n_held], rows[n_held:]))
    grid = (SIDE, SIDE)
    settings: dict[str, Any] = {"max_iter": MAX_ITER, "random_state": seed}
    one = completion_perplexity(CountingGrid(grid, WINDOW, **settings).fit(learned), held)
    several = completion_perplexity(ComponentialGrid(grid, COMPONENTIAL_WINDOW, **settings).fit(learned), held)
    figures = f"held-out perplexity {several:.0f} with a place for each word, {one:.0f} with one for each item"
    return ModelChoice(several <= (1 - LEAST_GAIN) * one, figures)


def completion_perplexity(model: Any, counts: sp.csr_array) -> float:
    """Return the perplexity of half of the tokens of each bag, given the other half.

    Parameters
    ----------
    model : CountingGrid or ComponentialGrid
        A fitted model without sections.
    counts : csr_array of shape (n_bags, n_features)
        Bags that were not learned from.

    Returns
    -------
    perplexity : float
        For a grid with one place for each bag, p(z) = sum_k q[k] h[k, z], with the posterior q given the shown half.
    """
    if isinstance(model, ComponentialGrid):
        return model.perplexity(counts)
    shown, hidden = completion.split(counts, np.random.RandomState(0))
    pi = model.planes().pi
    h = em.histograms(pi, model.geometry_.window).reshape(len(pi), -1)
    q = np.concatenate([block.reshape(len(block), -1) for block, _ in model.iter_posteriors(shown)])
    log_p = 0.0
    for row, posterior in enumerate(q):
        part = slice(hidden.indptr[row], hidden.indptr[row + 1])
        log_p += float(hidden.data[part] @ np.log(h[hidden.indices[part]] @ posterior + SMALLEST))
    return float(np.exp(-log_p / max(hidden.data.sum(dtype=np.float64), 1)))
