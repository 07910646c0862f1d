"""
A scene from plain histograms
=============================

Here a window is one histogram, without sections: nothing says what was left and right, or above and below. The
distances between the histograms are enough to find a layout, because windows that overlap have similar histograms.
"""

# %%
# The same fifty windows as in :ref:`sphx_glr_gallery_plot_scene.py`, each as one histogram of 64 colors.

import matplotlib.pyplot as plt
import numpy as np

import countinggrids as cg
from countinggrids import plot
from countinggrids.core.alignment import align
from countinggrids.reproduce import demo

scene = demo.photo_scene()
rng = np.random.default_rng(0)
corners = np.stack([rng.integers(0, n - 16 + 1, 50) for n in scene.labels.shape], axis=1)
X = cg.bag([scene.labels[row : row + 16, column : column + 16] for row, column in corners], n_features=64)

# %%
# ``init="uniform"`` anneals from a near uniform grid. ``init="embedding"`` starts from a layout in which the
# distances between windows agree with the distances between their histograms. The default, ``"auto"``, tries both
# where the distances fit a plane, and keeps the grid with the better objective.

models = {init: cg.CountingGrid((38, 53), (16, 16), init=init, random_state=0) for init in ("uniform", "embedding")}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
axes[0].imshow(scene.palette[scene.labels])
axes[0].set(title="the photo, 30 x 45 pixels", xticks=[], yticks=[])
for ax, (init, model) in zip(axes[1:], models.items(), strict=True):
    model.fit(X)
    found = align(model.locate(X), corners, (38, 53), has_symmetries=True)
    plot.grid(model, scene.vocabulary, ax, roll=True)
    ax.set_title(f"{init}: {found.is_correct.sum()} of 50 within one cell")
plt.show()

# %%
# Histograms have no orientation, so that a layout may come out mirrored or with its axes swapped; that is not counted
# as an error here.
