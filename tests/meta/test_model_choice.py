"""One place for each item or for each word, chosen by held-out words."""

import numpy as np
import pytest

import countinggrids as cg
from countinggrids.meta.model_choice import choose_model, completion_perplexity

TOPICS = [
    [f"{topic}{i}" for i in range(12)] for topic in ("tea", "rail", "sea", "rose", "chess", "rock", "bread", "law")
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def texts(n_topics, n=300):
    """Return texts of words from so many topics each."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        mixed = [TOPICS[k] for k in rng.permutation(len(TOPICS))[:n_topics]]
        found.append(" ".join(rng.choice(mixed[rng.integers(n_topics)]) for _ in range(60)))
    return cg.Collection.from_texts(found)


def test_texts_of_one_topic_have_one_place_and_mixed_ones_several():
    one, mixed = (choose_model(texts(n), 0) for n in (1, 4))
    assert not one.is_componential, one.reason
    assert mixed.is_componential, mixed.reason
    assert "held-out perplexity" in mixed.reason


def test_the_choice_is_the_same_again():
    assert choose_model(texts(2, 100), 3) == choose_model(texts(2, 100), 3)


def test_few_items_are_not_compared():
    choice = choose_model(texts(2, 20), 0)
    assert not choice.is_componential
    assert "too few" in choice.reason


def test_a_uniform_grid_has_the_perplexity_of_its_features():
    counts = texts(2, 30).counts
    n_features = counts.shape[1]
    model = cg.CountingGrid((3, 3), (1, 1), init=np.full((3, 3, n_features), 1 / n_features), max_iter=1, anneal=None)
    model.fit(np.ones((2, n_features)))
    assert completion_perplexity(model, counts) == pytest.approx(n_features, rel=1e-3)
