"""
A walk, filtered and smoothed
=============================

A camera moves over a photo, and each frame is a bag of visual words. A model of each place says how likely a frame is
there; a Markov chain says how places follow each other. Together they are a hidden Markov model.
"""

# %%
# The places are six parts of scikit-learn's photo of a temple. Two walks over it are for training, one is for
# testing; frames are bags of 25 words that are drawn from what the camera sees.

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack
from sklearn.datasets import load_sample_image

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Codebook, DenseSIFT

photo = load_sample_image("china.jpg")
sift, codebook = DenseSIFT(patch=16, step=8), Codebook(60, random_state=0)
words = np.asarray(next(iter(codebook.fit(sift.transform([photo])).transform(sift.transform([photo])))))
names = np.array([[f"{side} {height}" for side in ("left", "middle", "right")] for height in ("top", "bottom")])


def walk(seed: int, n_frames: int = 300) -> tuple[list[NDArray[np.int64]], NDArray[np.str_]]:
    """Return the frames of a walk over the photo, as labels of words, and the name of the place of each."""
    rng = np.random.default_rng(seed)
    room = np.array(words.shape) - (14, 18)
    turns = np.outer(np.linspace(0, 6, n_frames), (3 + seed, 2)) + rng.uniform(0, 6, 2)
    corners = ((0.5 + 0.5 * np.sin(turns)) * room).astype(int)
    frames = [rng.choice(words[r : r + 14, c : c + 18].ravel(), (1, 25)) for r, c in corners]
    return frames, names[2 * corners[:, 0] // (room[0] + 1), 3 * corners[:, 1] // (room[1] + 1)]


frames, places = zip(*(walk(seed) for seed in range(3)), strict=True)
bags = [cg.bag(each, n_features=60) for each in frames]

# %%
# ``gamma`` weights the likelihoods; it is chosen by cross-validation over the training walks.

grids = cg.GridClassifier(cg.CountingGrid((8, 8), (3, 3)), random_state=0)
tracker = cg.PlaceTracker(grids, gammas=(1, 0.5, 0.2)).fit(
    vstack(bags[:2]), np.concatenate(places[:2]), lengths=[300, 300]
)

# %%
# The posterior over places, given the frames so far (filter) and given all frames (smooth), above the true places:

figure, axes = plt.subplots(3, 1, figsize=(10, 7), layout="constrained")
posteriors = [grids.fit(vstack(bags[:2]), np.concatenate(places[:2])).predict_proba(bags[2])]
posteriors += [tracker.filter(bags[2]), tracker.smooth(bags[2])]
for ax, name, posterior in zip(axes, ("each frame alone", "filter", "smooth"), posteriors, strict=True):
    plot.ribbon(posterior, tracker.classes_, places[2], ax)
    accuracy = 100 * np.mean(tracker.classes_[posterior.argmax(axis=1)] == places[2])
    ax.set_title(f"{name}: accuracy {accuracy:.1f}%")
plt.show()
