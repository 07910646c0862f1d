"""
A scene from fifty histograms
=============================

A photo is cut into fifty windows. All that is kept of a window are four histograms of colors, one of each quarter;
where it was is discarded. A counting grid finds a layout that explains all histograms at once, and with it the photo.
"""

# %%
# The photo ships with scikit-learn. It is reduced to 30 x 45 pixels in 64 colors, which are unrelated features to the
# model.

import matplotlib.pyplot as plt
import numpy as np

import countinggrids as cg
from countinggrids import plot
from countinggrids.reproduce import demo

scene = demo.photo_scene()
rng = np.random.default_rng(0)
corners = np.stack([rng.integers(0, n - 16 + 1, 50) for n in scene.labels.shape], axis=1)
windows = [scene.labels[row : row + 16, column : column + 16] for row, column in corners]

# %%
# Fifty bags of four sections, and a torus that is somewhat larger than the photo:

X = cg.bag(windows, sections=(2, 2), n_features=64)
model = cg.CountingGrid(grid=(38, 53), window=(16, 16), sections=(2, 2), random_state=0).fit(X)

# %%
# The mean color of each cell. The torus has no origin, so ``roll=True`` puts the least used cells at the border.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.imshow(scene.palette[scene.labels])
left.set(title="the photo, 30 x 45 pixels", xticks=[], yticks=[])
plot.grid(model, scene.vocabulary, right, roll=True)
right.set_title("the grid, from fifty histograms")
plt.show()
