"""
Classify images whose content moves
===================================

A counting grid is a density model, so that a classifier is a grid for each class and Bayes' rule. Where the content
of images moves, a window of the grid moves with it; sections that are fixed in the image do not.
"""

# %%
# Handwritten digits of 8 x 8 pixels, each somewhere on a field of 12 x 12. A pixel is a feature by its gray level
# (four of them), counted in 6 x 6 sections.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import countinggrids as cg
from countinggrids import plot

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
fields = np.zeros((len(images), 12, 12), int)
for field, image in zip(fields, images.reshape(-1, 8, 8), strict=True):
    row, column = rng.integers(0, 5, 2)
    field[row : row + 8, column : column + 8] = image // 4.01
X = cg.bag(fields, sections=(6, 6), n_features=4)
train, test, y_train, y_test = train_test_split(X, labels, train_size=800, random_state=0, stratify=labels)

# %%
# A spatial bag of words has components instead of windows. It has as many sections as the grid.

classifiers = {
    "spatial bag of words": cg.GridClassifier(cg.SpatialBagOfWords(12, (6, 6)), random_state=0),
    "counting grid": cg.GridClassifier(cg.CountingGrid((24, 24), (12, 12), (6, 6)), random_state=0),
}
for name, classifier in classifiers.items():
    print(f"{name}: accuracy {100 * classifier.fit(train, y_train).score(test, y_test):.1f}%")

# %%
# Some fields, and the confusion matrix of the counting grids:

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
left.imshow(fields[:24].reshape(4, 6, 12, 12).swapaxes(1, 2).reshape(48, 72), cmap="gray_r")
left.set(title="digits on a field", xticks=[], yticks=[])
plot.confusion(y_test, np.asarray(classifiers["counting grid"].predict(test)), right)
plt.show()

# %%
# On digits that are centered the spatial bag of words is better. :doc:`/experiments/scenes15` has both on photos of
# scenes, whose sections hardly move.
