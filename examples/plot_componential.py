"""
A topic model that is a map
===========================

In a counting grid a document lies in one window. In a componential counting grid every word has its own window, so
that a document with two themes lies in two places. Both are compared on words that are held out.
"""

# %%
# Documents of two themes: each is the first half of one docstring of scikit-learn and the second half of another.

import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.discovery import all_estimators, all_functions

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Vocabulary

texts = [(inspect.getdoc(thing) or "").split("Examples\n---")[0] for _, thing in [*all_estimators(), *all_functions()]]
counter = CountVectorizer(min_df=8, max_df=0.2, stop_words="english")
X = sp.csr_array(counter.fit_transform(texts))
rng = np.random.default_rng(0)
first, second = (rng.permutation(X.shape[0]) for _ in range(2))
mixed = sp.csr_array(X[first] + X[second])
train, test = mixed[:420], mixed[420:]

# %%
# Half of the words of each test document are shown, and the others are predicted (document completion):

shown = test.copy()
shown.data = rng.binomial(test.data.astype(int), 0.5).astype(float)
hidden = test - shown


def completion(mixtures: NDArray[np.float64], histograms: NDArray[np.float64]) -> float:
    """Return the perplexity of the hidden words, given the mixture of each document."""
    p = mixtures @ histograms
    return float(np.exp(-hidden.multiply(np.log(np.maximum(p, 1e-12))).sum() / hidden.sum()))


def windows(model: cg.CountingGrid | cg.ComponentialGrid, width: int) -> NDArray[np.float64]:
    """Return the histogram of every window."""
    shifts = [(-row, -column) for row in range(width) for column in range(width)]
    cells = np.mean([np.roll(model.pi_, shift, (0, 1)) for shift in shifts], axis=0)
    return cells.reshape(-1, cells.shape[-1])


single = cg.CountingGrid((16, 16), (4, 4), random_state=0).fit(train)
several = cg.ComponentialGrid((16, 16), (3, 3), random_state=0).fit(train)
lda = LatentDirichletAllocation(28, max_iter=30, random_state=0).fit(train)
topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
scores = {
    "counting grid": completion(single.transform(shown), windows(single, 4)),
    "LDA, 28 topics": completion(lda.transform(shown), topics),
    "componential grid": completion(several.transform(shown), windows(several, 3)),
}
for name, score in scores.items():
    print(f"{name}: held-out perplexity {score:.0f}")

# %%
# Where the words of the first test document lie: in one window, and in several.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, name, model in zip(axes, ("counting grid", "componential grid"), (single, several), strict=True):
    ax.imshow(model.transform(test[[0]])[0].reshape(16, 16), cmap="Blues")
    ax.set(title=name, xticks=[], yticks=[])
plt.show()

# %%
# The same document in reading order, as a path over the map, from the circle to the square: the first docstring lies in
# one place, the second in another.

words = counter.build_analyzer()(f"{texts[first[420]]} {texts[second[420]]}")
vocabulary = Vocabulary("words", tuple(counter.get_feature_names_out()))
ax = plot.usage(several, train, roll=True)
plot.path(several, words, vocabulary, ax, roll=True)
plt.show()
