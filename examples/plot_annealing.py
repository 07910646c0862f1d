"""
Annealing against plain EM
==========================

Plain EM ends in a jumble of tiles that are locally right. Deterministic annealing starts where the grid has no
structure, and lets the coarse layout form before the details.
"""

# %%
# Fifty windows of a photo, four histograms each, with annealing (the default) and without (``anneal=None``), two
# seeds each:

import matplotlib.pyplot as plt

import countinggrids as cg
from countinggrids import plot
from countinggrids.core.alignment import align
from countinggrids.reproduce import demo

scene = demo.photo_scene()
figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
for row, (name, anneal) in zip(axes, {"annealing": "auto", "plain EM": None}.items(), strict=True):
    for seed, ax in enumerate(row):
        corners, X = demo.cut(scene, seed)
        model = cg.CountingGrid((38, 53), (16, 16), (2, 2), anneal=anneal, random_state=seed).fit(X)
        found = align(model.locate(X), corners, (38, 53))
        plot.grid(model, scene.vocabulary, ax, roll=True)
        ax.set_title(f"{name}, seed {seed}: {found.is_correct.sum()} of 50")
plt.show()

# %%
# The numbers are windows within one cell of their place, up to one common shift. ``history_`` of the last model shows
# the objective of plain EM, which never falls:

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
plot.history(model, ax)
plt.show()
