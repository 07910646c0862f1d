"""
The words of a region
=====================

The docstrings of scikit-learn as a map: neighboring windows share words, regions get names, and every window has
words that distinguish it from the rest.
"""

# %%
# Every estimator and every public function is a document. ``Words`` counts words that occur in several of them, but
# not in too many.

import inspect

import matplotlib.pyplot as plt
from sklearn.utils.discovery import all_estimators, all_functions

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Words

things = [*all_estimators(), *all_functions()]
texts = [
    {"text": (inspect.getdoc(thing) or "").split("Examples\n---")[0], "title": name, "label": thing.__module__}
    for name, thing in things
]
documents = cg.Collection.from_texts(texts, Words(min_df=5, max_df=0.2, stop_words="english", min_length=4))
model = cg.CountingGrid((20, 20), (4, 4), random_state=0).fit(documents)

# %%
# ``plot.words`` writes the most distinctive words of each place; the background is darker where many documents are.

figure, ax = plt.subplots(figsize=(9, 9), layout="constrained")
plot.words(model, documents, ax, roll=True)
plt.show()

# %%
# Regions are found at several levels, each inside the one before, and named by words with large log-odds. The finest
# level as a table:

regions = model.regions(documents)
finest = regions[regions["level"] == regions["level"].max()]
print(finest[["name", "n_items"]].to_string())

# %%
# The words of the largest of these, with z-scores of their log-odds against the rest of the map:

for word, score in model.top_words(int(finest["n_items"].idxmax()), documents, n=8):
    print(f"{word:15} {score:5.1f}")
