"""Scene classification on 15-Scenes: a model a class, everything chosen on the training images of each split.

COUNTINGGRIDS_DATA=... python benchmarks/scenes15.py --splits 5

100 images a class train, the rest test; the codebook is learnt from the training images too. Training images are also
shown left for right, to all models alike; a fold that tries on an image has seen neither it nor its mirror image.
"""

import copy
import time
import warnings

import numba
import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import countinggrids as cg
from common import split_seeds, table, unpacked
from countinggrids import datasets
from countinggrids.features import Codebook, DenseSIFT, mirrored
from countinggrids.rivals import LDA

ANNEAL = (0.1, 1.05, 1.0)
FINEST = (4, 4)
POWERS = (0.7, 1.0)
PAPER = {
    "mixture": 59.9,
    "LDA": 65.1,
    "spatial bag of words 4x4": 73.3,
    "counting grid 1x1": 72.2,
    "counting grid 4x4": 74.5,
    "spatial pyramid kernel, nothing mirrored": 79.9,
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


def chosen_grid(split, sections, grids, windows, powers):
    """Choose grid, window and power by cross-validation; give what won."""
    search = cg.CapacitySearch(
        cg.CountingGrid(anneal=ANNEAL), grids=grids, windows=windows, sections=(sections,), tokens=(100,),
        powers=powers, capacities=(1, 10), x_sections=4, cv=split.folds, random_state=0, refit=False,
    )  # fmt: skip
    return search.fit(split.X[split.both], split.y[split.both]).best_candidate_


def averaged(split, candidates, rows):
    """Learn three restarts a class of each candidate, whose likelihoods are to be averaged."""
    members = []
    for best in candidates:
        sections = None if best.sections == (1, 1) else best.sections
        grid = cg.CountingGrid(best.grid, best.window, sections, anneal=ANNEAL)
        steps = cg.BagCoarsener(best.sections, FINEST), cg.BagScaler(best.tokens, best.power)
        members.append(make_pipeline(*steps, grid))
    model = cg.GridClassifier(members, n_init=3, committee="likelihoods", random_state=0)
    return model.fit(split.X[rows], split.y[rows])


def first_of(classifier):
    """Keep only the first restart of each class."""
    one = copy.copy(classifier).set_params(estimator=classifier.estimator[:1])
    one.models_ = [models[:1] for models in classifier.models_]
    return one


def pyramid(X):
    """Stack the weighted histograms of three levels."""
    levels = [cg.BagCoarsener(n, FINEST).fit_transform(X) * weight for n, weight in ((4, 0.5), (2, 0.25), (1, 0.25))]
    return (np.hstack(levels) / X.sum(axis=1, keepdims=True)).astype(np.float32)


@numba.njit(fastmath=True)
def intersections(A, B):
    K = np.zeros((len(A), len(B)), np.float32)
    for i in range(len(A)):
        for j in range(len(B)):
            total = np.float32(0)
            for d in range(A.shape[1]):
                total += min(A[i, d], B[j, d])
            K[i, j] = total
    return K


def svm_accuracy(split, K, rows):
    """Train an SVM on rows of `both`; K holds them against `both` and the test images."""
    svm = SVC(C=10, kernel="precomputed").fit(K[np.ix_(rows, rows)], split.y[split.both[rows]])
    return split.right(svm.predict(K[rows, len(split.both) :].T))


def score_kernel(split, classifier):
    """Compare the score vectors of `both` with those of `both` and of the test images."""
    space = cg.ScoreSpace(first_of(classifier), sum_over="nothing", center=False, power=0.3).fit(split.X)
    vectors = space.transform(split.X[np.r_[split.both, split.test]])
    return vectors[: len(split.both)] @ vectors.T


def by_kernels(split, classifiers, note):
    """Classify by SVMs: the spatial pyramid, score spaces, and both together; with mirror images, and without."""
    histograms = pyramid(split.X[np.r_[split.both, split.test]])
    kernels = {"spatial pyramid kernel": intersections(histograms[: len(split.both)], histograms)}
    scores = [score_kernel(split, classifier) for classifier in classifiers]
    kernels["score space 4x4"] = scores[-1]
    kernels["score space 1x1, 2x2 and 4x4"] = sum(scores)
    kernels["score space and pyramid kernel"] = sum(scores) / 3 + kernels["spatial pyramid kernel"]
    for name, kernel in kernels.items():
        note(name, svm_accuracy(split, kernel, np.arange(len(split.both))))
        note(f"{name}, nothing mirrored", svm_accuracy(split, kernel, np.arange(len(split.train))))


def one_split(split):
    """Give the shares of test images that each model gets right."""
    right = {}

    def note(name, share, settings=""):
        right[name] = share
        print(f"  {name}: {100 * share:.1f}%  {settings}", flush=True)

    mixture, spatial = cg.MixtureOfUnigrams(anneal=None), cg.SpatialBagOfWords(sections=FINEST, anneal=None)
    note("mixture", *by_search(split, mixture, 1, {"n_components": [2, 5, 10], "power": POWERS}))
    note("LDA", *by_search(split, LDA(), 1, {"n_components": [2, 5], "power": POWERS}))
    note("spatial bag of words 4x4", *by_search(split, spatial, 4, {"n_components": [1, 2], "power": POWERS}))
    best = chosen_grid(split, 1, (6, 8, 12), (4,), POWERS)
    chosen = {
        1: best,
        2: best._replace(sections=(2, 2)),
        4: chosen_grid(split, 4, (8, 12), (8,), (best.power,)),
    }
    X, models = split.X[split.test], {}
    for n, candidate in chosen.items():
        models[n] = averaged(split, [candidate], split.both)
        note(f"counting grid {n}x{n}", split.right(first_of(models[n]).predict(X)), candidate)
        note(f"counting grid {n}x{n}, three averaged", split.right(models[n].predict(X)))
    plain = averaged(split, [best], split.train)
    note("counting grid 1x1, three averaged, nothing mirrored", split.right(plain.predict(X)))
    whole = averaged(split, [best._replace(grid=(n, n)) for n in (6, 8, 12)], split.both)
    note("counting grid 1x1, three of each of three capacities averaged", split.right(whole.predict(X)))
    # A committee of classifiers whose members see different sections is no more than this mean.
    together = np.mean([model.log_likelihoods(X) for model in (whole, models[2], models[4])], axis=0)
    note("committee of 1x1, 2x2 and 4x4", split.right(whole.classes_[together.argmax(axis=1)]))
    by_kernels(split, list(models.values()), note)
    return right


def main():
    seeds = split_seeds()
    warnings.filterwarnings("ignore")
    results = []
    with unpacked("15scenes.tar") as folder:
        if folder is None:
            return
        items = datasets.scenes15(folder / "15scenes")
        paths = [items.path(i) for i in range(len(items))]
        labels = items["label"].astype(str)
        for seed in seeds:
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
