"""
A map that grows
================

New documents arrive. ``grow`` learns from them so that the old documents keep their places, and reports which regions
were born, grew, drifted or died.
"""

# %%
# A map of scikit-learn's estimators, by their docstrings:

import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.utils.discovery import all_estimators, all_functions

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Words


def documents(things: list[tuple[str, object]]) -> cg.Collection:
    """Count the words of docstrings."""
    texts = [{"text": (inspect.getdoc(thing) or "").split("Examples\n---")[0], "title": name} for name, thing in things]
    return cg.Collection.from_texts(texts, Words(min_df=4, max_df=0.2, stop_words="english", min_length=4))


old = documents(all_estimators())
model = cg.CountingGrid((20, 20), (4, 4), random_state=0).fit(old)

# %%
# The functions of ``sklearn.metrics`` arrive. Most of them have no estimator like them.

metrics = [(name, thing) for name, thing in all_functions() if ".metrics." in thing.__module__]
growth = model.grow(documents(metrics), old)
print(f"{len(growth.moved)} old documents, of which {np.mean(growth.moved <= 1):.0%} moved by at most one cell")
print(growth.to_frame()[["change", "name", "n_new"]].head(6).to_string())

# %%
# Where documents are, before and after:

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot.usage(model, old.counts, left)
left.set_title(f"before: {len(old)} estimators")
plot.usage(growth.model, growth.collection.counts, right)
right.set_title(f"after: {len(growth.collection) - len(old)} functions more")
plt.show()
