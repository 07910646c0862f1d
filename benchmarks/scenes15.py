"""Scene classification on 15-Scenes: a model a class, everything chosen on the training images of each split.

COUNTINGGRIDS_DATA=... python benchmarks/scenes15.py --splits 5

100 images a class train, the rest test; the codebook is learnt from the training images too. Training images are also
shown left for right, to all models alike; a fold that tries on an image has seen neither it nor its mirror image.
"""

import copy
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import countinggrids as cg
from common import n_splits, table, unpacked
from countinggrids import datasets
from countinggrids.features import Codebook, DenseSIFT, mirrored
from countinggrids.rivals import LDA, PyramidKernel, ReconfigurableBags, Tessellated

ANNEAL = (0.1, 1.05, 1.0)
FINEST = (4, 4)
POWERS = (0.5, 0.75, 1.0)
PAPER = {
    "mixture": 59.9,
    "LDA": 65.1,
    "spatial bag of words 4x4": 73.3,
    "reconfigurable bag of words 4x4": 75.0,
    "counting grid 1x1": 72.2,
    "counting grid 4x4": 74.5,
    "spatial pyramid kernel": 79.9,
}


class Split:
    """The bags of one split: all images, then the training images left for right.

    Attributes
    ----------
    X, y : the bags by 4x4 sections, and their labels
    train, both, test : rows of the training images, of these and their mirror images, and of the test images
    folds : of the rows of `both`, with mirror images to learn from only
    """

    def __init__(self, items, paths, labels, seed):
        rng = np.random.default_rng(seed)
        names = sorted(set(labels))
        self.train = np.concatenate([rng.permutation(np.flatnonzero(labels == name))[:100] for name in names])
        self.test = np.setdiff1d(np.arange(len(labels)), self.train)
        self.both = np.r_[self.train, len(labels) + np.arange(len(self.train))]
        self.y = np.r_[labels, labels[self.train]]
        sift, book = DenseSIFT(), Codebook(200, random_state=seed)
        chosen = [paths[i] for i in self.train]
        book.fit(sift.transform(chosen))
        whole = cg.Collection.from_images(items, [sift, book], FINEST, paths).counts
        turned = cg.Collection.from_images(items.take(self.train), [sift, book], FINEST, mirrored(chosen)).counts
        self.X = sp.vstack([whole, turned]).toarray()
        folds = StratifiedKFold(3, shuffle=True, random_state=0).split(self.train, self.y[self.train])
        self.folds = [(np.r_[a, a + len(self.train)], b) for a, b in folds]

    def right(self, predicted):
        return np.mean(predicted == self.y[self.test])


def by_search(split, model, sections, options):
    """Choose settings of a rival by cross-validation; give the accuracy of three averaged restarts."""
    steps = cg.BagCoarsener(sections, FINEST), cg.BagScaler(), cg.GridClassifier(model, random_state=0)
    names = {"power": "bagscaler__power"}
    wanted = {names.get(name, f"gridclassifier__estimator__{name}"): values for name, values in options.items()}
    search = GridSearchCV(make_pipeline(*steps), wanted, cv=split.folds, refit=False)
    search.fit(split.X[split.both], split.y[split.both])
    best = make_pipeline(*steps).set_params(**search.best_params_, gridclassifier__n_init=3)
    best.fit(split.X[split.both], split.y[split.both])
    return split.right(best.predict(split.X[split.test])), list(search.best_params_.values())


def chosen_grid(split, sections, grids, windows, powers, highest=10):
    """Choose grid, window and power by cross-validation, up to the highest capacity; give what won."""
    search = cg.CapacitySearch(
        cg.CountingGrid(anneal=ANNEAL), grids=grids, windows=windows, sections=(sections,), tokens=(100,),
        powers=powers, capacities=(1, highest), x_sections=4, cv=split.folds, random_state=0, refit=False,
    )  # fmt: skip
    return search.fit(split.X[split.both], split.y[split.both]).best_candidate_


def averaged(split, best, rows):
    """Learn three restarts a class, to be averaged."""
    sections = None if best.sections == (1, 1) else best.sections
    grid = cg.CountingGrid(best.grid, best.window, sections, anneal=ANNEAL)
    pipe = make_pipeline(cg.BagCoarsener(best.sections, FINEST), cg.BagScaler(best.tokens, best.power), grid)
    return cg.GridClassifier(pipe, n_init=3, random_state=0).fit(split.X[rows], split.y[rows])


def first_of(classifier):
    """Keep only the first restart of each class."""
    one = copy.copy(classifier)
    one.models_ = [models[:1] for models in classifier.models_]
    return one


def svm_accuracy(split, K, rows):
    """Train an SVM on rows of `both`; K holds them against `both` and the test images."""
    svm = SVC(C=10, kernel="precomputed").fit(K[np.ix_(rows, rows)], split.y[split.both[rows]])
    return split.right(svm.predict(K[rows, len(split.both) :].T))


def kernels(split, classifiers):
    """Give the kernels of the pyramid and of the score spaces, `both` against `both` and the test images."""
    rows, n = np.r_[split.both, split.test], len(split.both)
    pyramid = PyramidKernel(FINEST).fit(split.X[rows])
    found = {"spatial pyramid kernel": pyramid.transform(split.X[split.both])}
    for sections, classifier in classifiers.items():
        space = cg.ScoreSpace(first_of(classifier), sum_over="nothing", center=False).fit(split.X)
        vectors = space.transform(split.X[rows])
        found[f"score space {sections}x{sections}"] = vectors[:n] @ vectors.T
    found["score space 1x1, 2x2 and 4x4"] = sum(found[f"score space {sections}x{sections}"] for sections in classifiers)
    return found


def one_split(split):
    right, chosen = {}, {}

    def note(name, share, settings=""):
        right[name] = share
        print(f"  {name}: {100 * share:.1f}%  {settings}", flush=True)

    mixture, spatial = cg.MixtureOfUnigrams(anneal=None), cg.SpatialBagOfWords(sections=FINEST, anneal=None)
    note("mixture", *by_search(split, mixture, 1, {"n_components": [2, 5, 10], "power": POWERS}))
    share, settings = by_search(split, LDA(), 1, {"n_components": [2, 5, 10], "power": POWERS})
    note("LDA", share, settings)
    topics = {"estimator__n_components": [1, 2, 5], "power": settings[:1]}
    note("LDA 4x4", *by_search(split, Tessellated(LDA(), FINEST), 4, topics))
    note("spatial bag of words 4x4", *by_search(split, spatial, 4, {"n_components": [1, 2], "power": POWERS}))
    regions = {"n_components": [8, 16, 32], "power": POWERS}
    note("reconfigurable bag of words 4x4", *by_search(split, ReconfigurableBags(sections=FINEST), 4, regions))
    best = chosen_grid(split, 1, (6, 8, 12), (4,), POWERS)
    chosen[1] = best
    chosen[2] = chosen_grid(split, 2, (6, 8, 12), (4,), (best.power,))
    chosen[4] = chosen_grid(split, 4, (8, 12), (4, 8), (best.power,), 5)
    models, energies = {}, {}
    for n, candidate in chosen.items():
        models[n] = averaged(split, candidate, split.both)
        energies[n] = models[n].log_likelihoods(split.X[split.test])
        name = f"counting grid {n}x{n}"
        note(name, split.right(first_of(models[n]).predict(split.X[split.test])), candidate)
        note(f"{name}, three averaged", split.right(models[n].predict(split.X[split.test])))
    unmirrored = averaged(split, best, split.train)
    note("counting grid 1x1, three averaged, nothing mirrored", split.right(unmirrored.predict(split.X[split.test])))
    # What a committee of the three does is no more than this mean.
    together = np.mean(list(energies.values()), axis=0)
    note("committee of 1x1, 2x2 and 4x4", split.right(models[1].classes_[together.argmax(axis=1)]))
    for name, K in kernels(split, models).items():
        note(name, svm_accuracy(split, K, np.arange(len(split.both))))
        if "pyramid" in name or "and" in name:
            note(f"{name}, nothing mirrored", svm_accuracy(split, K, np.arange(len(split.train))))
    return right


def main():
    splits = n_splits()
    warnings.filterwarnings("ignore")
    results = []
    with unpacked("15scenes.tar") as folder:
        if folder is None:
            return
        items = datasets.scenes15(folder / "15scenes")
        paths = [items.path(i) for i in range(len(items))]
        labels = items["label"].astype(str)
        for seed in range(splits):
            began = time.perf_counter()
            print(f"split {seed}", flush=True)
            results.append(one_split(Split(items, paths, labels, seed)))
            print(f"  {time.perf_counter() - began:.0f} s", flush=True)
    rows = []
    for name in results[0]:
        shares = 100 * np.array([right[name] for right in results])
        rows.append([name, f"{shares.mean():.1f} +- {shares.std():.1f}", PAPER.get(name, "")])
    table(f"15-Scenes, 100 images a class, {len(results)} splits", ["model", "right, %", "the paper's"], rows)


if __name__ == "__main__":
    main()
