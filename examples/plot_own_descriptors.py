"""
Descriptors of your own
=======================

Any function from an image to vectors at regular places can be the source of visual words: a network, a filter bank,
or a few lines of NumPy as here.
"""

# %%
# Blocks of 8 x 8 pixels are described by their mean color and by the energy of their gradients:

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image

import countinggrids as cg
from countinggrids.features import Codebook, FunctionDescriptors


def colors_and_gradients(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return five numbers for each block of 8 x 8 pixels."""
    rows, columns = image.shape[0] // 8, image.shape[1] // 8
    blocks = image[: rows * 8, : columns * 8].reshape(rows, 8, columns, 8, 3).swapaxes(1, 2) / 255.0
    gray = blocks.mean(axis=-1)
    vertical, horizontal = (np.abs(np.diff(gray, axis=axis)).mean(axis=(2, 3)) for axis in (2, 3))
    return np.dstack([blocks.mean(axis=(2, 3)), 4 * vertical, 4 * horizontal])


# %%
# The images are crops of two photos. ``Codebook`` makes words of the vectors, and ``bag`` counts them by section.

rng = np.random.default_rng(0)
crops = []
for number in range(160):
    photo = load_sample_image(("china.jpg", "flower.jpg")[number % 2])
    row, column = rng.integers(0, 427 - 128), rng.integers(0, 640 - 128)
    crops.append(photo[row : row + 128, column : column + 128])
extractor, codebook = FunctionDescriptors(colors_and_gradients), Codebook(80, random_state=0)
X = cg.bag(codebook.fit_transform(extractor.transform(crops)), sections=(2, 2), n_features=80)
model = cg.CountingGrid((30, 30), (8, 8), (2, 2), random_state=0).fit(X)

# %%
# Every crop at its window: those that overlap in a photo are neighbors on the map.

figure, ax = plt.subplots(figsize=(7, 7), layout="constrained")
for crop, (row, column) in zip(crops, model.locate(X), strict=True):
    ax.imshow(crop[::2, ::2], extent=(column, column + 2.4, row + 2.4, row), zorder=2)
ax.set(xlim=(0, 32), ylim=(32, 0), xticks=[], yticks=[], title="160 crops of two photos on a grid of 30 x 30 cells")
plt.show()
