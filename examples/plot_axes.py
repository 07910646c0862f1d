"""
Grids of one and of three axes
==============================

A grid may have any number of axes. Here one axis is enough for views in a circle, and three axes sort colors.
"""

# %%
# A panorama that closes on itself: a photo and its mirror image, side by side. Views of a third of the circle are
# bags of colors; the grid is a ring, as is the panorama.

import matplotlib.pyplot as plt
import numpy as np

import countinggrids as cg
from countinggrids.reproduce import demo

scene = demo.photo_scene()
circle = np.hstack([scene.labels, scene.labels[:, ::-1]])
rng = np.random.default_rng(0)
starts = rng.integers(90, size=80)
views = [np.take(circle, range(start, start + 30), axis=1, mode="wrap") for start in starts]
X = cg.bag(views, sections=(1, 3), n_features=64)
ring = cg.CountingGrid(grid=(90,), window=(30,), sections=(3,), random_state=0).fit(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.scatter(starts, ring.locate(X)[:, 0], s=14)
left.set(xlabel="start of the view, pixels", ylabel="cell on the ring", title="one axis: the circle comes back")

# %%
# Three axes: bags are drawn around points of the color cube, and laid out on a torus of 8 x 8 x 8 cells.

centers = rng.uniform(0, 1, (400, 3))
levels = [np.exp(-0.5 * ((np.linspace(0, 1, 8) - centers[:, axis : axis + 1]) / 0.15) ** 2) for axis in range(3)]
Y = rng.poisson(20 * np.hstack([each / each.sum(axis=1, keepdims=True) for each in levels]))
cube = cg.CountingGrid(grid=(8, 8, 8), window=(2, 2, 2), random_state=0).fit(Y)
cells = cube.predict(Y)
means = np.array([centers[cells == cell].mean(axis=0) if np.any(cells == cell) else np.ones(3) for cell in range(512)])
panels = np.pad(means.reshape(8, 8, 8, 3), ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=1)
right.imshow(panels.reshape(2, 4, 9, 9, 3).swapaxes(1, 2).reshape(18, 36, 3))
right.set(title="three axes: eight layers of a color cube", xticks=[], yticks=[])
plt.show()
