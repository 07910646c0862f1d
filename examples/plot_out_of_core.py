"""
Bags that stay on disk
======================

A fit reads bags chunk by chunk, from a file or from a list of files. The result has the bits of a fit in memory.
"""

# %%
# Documents of scikit-learn's docstrings, in four files that ``scipy.sparse.save_npz`` writes:

import inspect
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.discovery import all_estimators, all_functions

import countinggrids as cg
from countinggrids import plot

texts = [inspect.getdoc(thing) or "" for _, thing in [*all_estimators(), *all_functions()]]
X = sp.csr_array(CountVectorizer(min_df=15, max_df=0.2).fit_transform(texts))
folder = Path(tempfile.mkdtemp())
files = [folder / f"part-{number}.npz" for number in range(4)]
for file, rows in zip(files, np.array_split(np.arange(X.shape[0]), 4), strict=True):
    sp.save_npz(file, X[rows])

# %%
# Files are read again in every iteration; only a chunk of them is in memory at a time.

in_memory = cg.CountingGrid((12, 12), (3, 3), random_state=0).fit(X)
on_disk = cg.CountingGrid((12, 12), (3, 3), random_state=0).fit(files)
print("the same bits:", np.array_equal(in_memory.pi_, on_disk.pi_))

# %%
# Predictions go through files too. ``usage`` is the expected number of documents of each window:

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot.usage(on_disk, X, left, roll=True)
left.set_title("documents that cover each cell")
plot.history(on_disk, right)
right.set_title("objective per token")
plt.show()
