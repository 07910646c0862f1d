"""
Sample from a model
===================

A counting grid is generative: choose a window by the prior, and draw features from its histogram. A sample shows what
a model has learned, and a model fitted to the sample shows what can be recovered from it.
"""

# %%
# A grid fitted to windows of a photo, in 64 colors:

import matplotlib.pyplot as plt
import numpy as np

import countinggrids as cg
from countinggrids import plot
from countinggrids.reproduce import demo

scene = demo.photo_scene()
_, X = demo.cut(scene, seed=0)
model = cg.CountingGrid((38, 53), (16, 16), (2, 2), random_state=0).fit(X)

# %%
# A hundred bags of 256 tokens, drawn from the model, and a grid that is fitted to them alone:

sampled, cells = model.sample(100, 256, random_state=0)
again = cg.CountingGrid((38, 53), (16, 16), (2, 2), random_state=0).fit(sampled)

figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained")
plot.grid(model, scene.vocabulary, axes[0], roll=True)
axes[0].set_title("the model")
tokens = np.repeat(np.arange(4 * 64), np.rint(sampled[[0]].toarray()[0]).astype(int)).reshape(2, 2, 8, 8) % 64
axes[1].imshow(scene.palette[tokens.swapaxes(1, 2).reshape(16, 16)])
axes[1].set(title="one sampled bag: its four histograms", xticks=[], yticks=[])
plot.grid(again, scene.vocabulary, axes[2], roll=True)
axes[2].set_title("a grid fitted to 100 sampled bags")
plt.show()
