"""
Six models of one family
========================

A mixture of unigrams, a spatial bag of words, counting grids, and epitomes are one model. They differ in the window,
in the sections of a bag that are compared with it, and in the sections that are added to the grid.
"""

# %%
# Windows of a drawing of eight labels, as label maps of 12 x 12 cells:

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Vocabulary
from countinggrids.reproduce import station

drawing = station.scene()[::2, ::2]
labels = Vocabulary("labels", station.NAMES, np.array(station.COLORS, np.uint8))
rng = np.random.default_rng(0)
corners = [[rng.integers(0, n - 12 + 1) for n in drawing.shape] for _ in range(60)]
maps = [drawing[row : row + 12, column : column + 12] for row, column in corners]

# %%
# Each model takes the same maps, cut into as many sections as it needs:

grid, window = (30, 48), (12, 12)
models = {
    "counting grid": (1, cg.CountingGrid(grid, window, random_state=0)),
    "tessellated counting grid": (2, cg.CountingGrid(grid, window, 2, random_state=0)),
    "discrete epitome": (12, cg.DiscreteEpitome(grid, window, random_state=0)),
    "hybrid, matched 2x2": (12, cg.HybridEpitome(grid, window, 2, random_state=0)),
    "mixture of unigrams": (1, cg.MixtureOfUnigrams(12, random_state=0)),
    "spatial bag of words": (2, cg.SpatialBagOfWords(12, (2, 2), random_state=0)),
}
for sections, model in models.values():
    model.fit(cg.bag(maps, sections, 8))

# %%
# Grids are drawn as the most likely label of each cell. The components of the mixture and of the spatial bag of words
# have no places, and are shown one after the other.

colors = np.array(station.COLORS, np.uint8)
figure, axes = plt.subplots(2, 4, figsize=(13, 4.6), layout="constrained")
axes[0, 0].imshow(colors[drawing])
axes[0, 0].set_title("the drawing")
for ax, name in zip(axes.flat[1:5], list(models)[:4], strict=True):
    plot.grid(models[name][1], labels, ax, roll=True)
    ax.set_title(name)
    ax.get_legend().remove()
mixture = models["mixture of unigrams"][1].pi_.argmax(axis=-1)
axes.flat[5].imshow(colors[mixture].reshape(2, 6, 3))
axes.flat[5].set_title("mixture: most likely label")
spatial = models["spatial bag of words"][1].pi_.argmax(axis=-1).reshape(2, 6, 2, 2)
padded = np.pad(colors[spatial], ((0, 0), (0, 0), (1, 0), (1, 0), (0, 0)), constant_values=255)
axes.flat[6].imshow(padded.swapaxes(1, 2).reshape(6, 18, 3))
axes.flat[6].set_title("spatial bag of words: 2 x 2 sections")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
axes.flat[7].axis("off")
axes.flat[7].legend(
    handles=[Patch(color=c / 255, label=n) for c, n in zip(colors, station.NAMES, strict=True)], ncols=2
)
plt.show()
