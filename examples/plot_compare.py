"""
Compare two groups
==================

Which words and which regions of a map does one group of documents have more of than another? ``compare`` answers with
log-odds, and controls the probability of any false alarm by a permutation test.
"""

# %%
# Two groups of scikit-learn's docstrings: classifiers and regressors.

import inspect

import matplotlib.pyplot as plt
from sklearn.utils.discovery import all_estimators

import countinggrids as cg
from countinggrids.features import Words

texts = []
for kind in ("classifier", "regressor"):
    for name, thing in all_estimators(type_filter=kind):
        texts.append({"text": (inspect.getdoc(thing) or "").split("Examples\n---")[0], "title": name, "label": kind})
documents = cg.Collection.from_texts(texts, Words(min_df=5, max_df=0.6, stop_words="english", min_length=4))
model = cg.CountingGrid((12, 12), (4, 4), random_state=0).fit(documents)

# %%
# ``p_value`` is adjusted for the number of words: z-scores take the words of a text for independent, the test does
# not.

comparison = cg.compare(model, documents, "classifier", "regressor", random_state=0)
words = comparison.to_frame("words")
print(words.head(8).to_string())

# %%
# The most different words on either side:

ordered = words.sort_values("z")
chosen = ordered.iloc[[*range(10), *range(-10, 0)]]
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.barh(chosen["word"], chosen["z"], color=["tab:orange" if z < 0 else "tab:blue" for z in chosen["z"]])
ax.set(xlabel="z-score of the log-odds", title="more in regressors (left) and in classifiers (right)")
plt.show()
