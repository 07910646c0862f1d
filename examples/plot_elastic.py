"""
Sections that may slip
======================

In a tessellated grid, sections of a bag are at fixed places of the window. In an elastic grid each may slip by a few
cells, with a probability that is learned.
"""

# %%
# Windows of a drawing, cut into 3 x 3 sections; each section was displaced by up to one cell at random, independently
# of the others.

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Vocabulary
from countinggrids.reproduce import station

drawing = station.scene()[::2, ::2]
labels = Vocabulary("labels", station.NAMES, np.array(station.COLORS, np.uint8))
rng = np.random.default_rng(0)


def displaced() -> NDArray[np.int64]:
    """Return a window of 12 x 12 labels whose sections of 4 x 4 were displaced."""
    row, column = rng.integers(1, drawing.shape[0] - 13 + 1), rng.integers(1, drawing.shape[1] - 13 + 1)
    window = np.zeros((12, 12), int)
    for top in (0, 4, 8):
        for left in (0, 4, 8):
            r, c = np.array([row + top, column + left]) + rng.integers(-1, 2, 2)
            window[top : top + 4, left : left + 4] = drawing[r : r + 4, c : c + 4]
    return window


X = cg.bag([displaced() for _ in range(120)], sections=(3, 3), n_features=8)
train, test = X[:80], X[80:]

# %%
# The elastic grid starts from the rigid one, so that the layout need not be found twice. It explains held-out windows
# better:

grid, window, sections = (30, 48), (12, 12), (3, 3)
rigid = cg.CountingGrid(grid, window, sections, random_state=0).fit(train)
elastic = cg.ElasticGrid(grid, window, sections, slack=1, anneal=None, init=rigid.pi_, max_iter=40, tol=1e-3).fit(train)
figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained")
for ax, name, model in zip(axes, ("rigid sections", "elastic sections"), (rigid, elastic), strict=False):
    plot.grid(model, labels, ax, roll=True)
    ax.set_title(f"{name}: held-out perplexity {model.perplexity(test):.2f}")

# %%
# ``slip_`` is the probability of each offset, here averaged over the sections. The truth is uniform.

shown = axes[2].imshow(elastic.slip_.mean(axis=0), vmin=0, extent=(-1.5, 1.5, 1.5, -1.5))
axes[2].set(title="probability of an offset, in cells")
figure.colorbar(shown, ax=axes[2])
plt.show()
