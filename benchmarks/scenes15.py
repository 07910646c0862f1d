"""Scene classification on 15-Scenes: a model a class, everything chosen on the training images of each split.

COUNTINGGRIDS_DATA=... python benchmarks/scenes15.py --splits 5

100 images a class train, the rest test; the codebook is learnt from the training images too.
"""

import time
import warnings

import numpy as np
from scipy.special import gammaln, psi
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import countinggrids as cg
from common import n_splits, table, unpacked
from countinggrids import datasets
from countinggrids.features import Codebook, DenseSIFT

ANNEAL = (0.1, 1.05, 1.0)
PAPER = {
    "mixture": 59.9,
    "LDA": 65.1,
    "spatial bag of words 4x4": 73.3,
    "counting grid 1x1": 72.2,
    "counting grid 4x4": 74.5,
    "spatial pyramid kernel": 79.9,
}


class Lda(LatentDirichletAllocation):
    """Latent Dirichlet allocation with a bound for each document, the topics taken as learnt."""

    def score_samples(self, X):
        gamma, _ = self._e_step(X, cal_sstats=False, random_init=False)
        log_theta = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
        log_beta = np.log(self.components_ / self.components_.sum(axis=1, keepdims=True))
        words = np.log(np.exp(log_theta) @ np.exp(log_beta))
        alpha = self.doc_topic_prior_
        prior = gammaln(alpha * gamma.shape[1]) - gamma.shape[1] * gammaln(alpha) + (alpha - 1) * log_theta.sum(axis=1)
        entropy = gammaln(gamma).sum(axis=1) - gammaln(gamma.sum(axis=1)) - ((gamma - 1) * log_theta).sum(axis=1)
        return np.asarray(X.multiply(words).sum(axis=1)).ravel() + prior + entropy


def bags_of(items, paths, train, seed):
    """Count words by 4x4 sections; the words come from the training images."""
    sift, book = DenseSIFT(), Codebook(200, random_state=seed)
    book.fit(sift.transform([paths[i] for i in train]))
    return cg.Collection.from_images(items, [sift, book], (4, 4), paths)


def searched(X, scaled, y, train, test, sections, grids, windows):
    """Choose grid and window by cross-validation; give the accuracy of one model and of three averaged."""
    grid = cg.CountingGrid(anneal=ANNEAL)
    options = {"grids": grids, "windows": windows, "sections": (sections,), "tokens": (100,)}
    search = cg.CapacitySearch(grid, **options, x_sections=4, random_state=0).fit(X[4][train], y[train])
    one = search.best_estimator_[-1]
    three = clone(one).set_params(n_init=3).fit(scaled[sections][train], y[train])
    shares = [model.score(scaled[sections][test], y[test]) for model in (one, three)]
    return *shares, search.best_candidate_, one


def by_search(model, name, values, X, y, train, test):
    """Choose one setting of a model a class by cross-validation."""
    pipe = make_pipeline(cg.BagScaler(100), cg.GridClassifier(model, random_state=0))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = GridSearchCV(pipe, {f"gridclassifier__estimator__{name}": values}, cv=folds).fit(X[train], y[train])
    return found.score(X[test], y[test]), found.best_params_


def pyramid(collection):
    """Stack the weighted histograms of three levels."""
    levels = [collection.coarsen((n, n)).counts.toarray() * weight for n, weight in ((4, 0.5), (2, 0.25), (1, 0.25))]
    return np.hstack(levels) / collection.counts.sum(axis=1)[:, None]


def kernel_accuracy(P, y, train, test):
    def intersections(A, B):
        return np.stack([np.minimum(row, B).sum(axis=1) for row in A])

    svm = SVC(C=10, kernel="precomputed").fit(intersections(P[train], P[train]), y[train])
    return np.mean(svm.predict(intersections(P[test], P[train])) == y[test])


def score_accuracy(parts, y, train, test, c=1.0):
    """Classify concatenated score vectors of several classifiers by a linear SVM."""
    spaces = [(cg.ScoreSpace(model, sum_over="nothing", center=False).fit(X), X) for model, X in parts]

    def vectors(rows):
        return np.hstack([space.transform(X[rows]) for space, X in spaces])

    svm = LinearSVC(C=c).fit(vectors(train), y[train])
    blocks = np.array_split(test, 1 + len(test) // 300)
    return np.mean(np.concatenate([svm.predict(vectors(rows)) for rows in blocks]) == y[test])


def one_split(items, paths, y, train, test, seed):
    collection = bags_of(items, paths, train, seed)
    X = {n: collection.coarsen((n, n)).counts for n in (1, 2, 4)}
    right, chosen = {}, {}
    right["mixture"], chosen["mixture"] = by_search(
        cg.MixtureOfUnigrams(anneal=None), "n_components", [2, 5, 10, 20], X[1], y, train, test
    )
    right["LDA"], chosen["LDA"] = by_search(Lda(max_iter=20), "n_components", [5, 10, 20], X[1], y, train, test)
    right["spatial bag of words 4x4"], chosen["spatial bag of words 4x4"] = by_search(
        cg.SpatialBagOfWords(sections=(4, 4), anneal=None), "n_components", [1, 2, 5], X[4], y, train, test
    )
    scaled = {n: cg.BagScaler(100).fit_transform(X[n]) for n in X}
    parts = []
    for n, grids, windows in ((1, (6, 8, 10, 12, 16), (4,)), (2, (6, 8, 12), (4,)), (4, (6, 8, 12, 16), (4, 8))):
        name = f"counting grid {n}x{n}"
        right[name], right[f"{name}, three averaged"], chosen[name], one = searched(
            X, scaled, y, train, test, n, grids, windows
        )
        parts.append((one, scaled[n]))
    right["score space 4x4"] = score_accuracy(parts[2:], y, train, test)
    right["score space 1x1, 2x2 and 4x4"] = score_accuracy(parts, y, train, test)
    right["spatial pyramid kernel"] = kernel_accuracy(pyramid(collection), y, train, test)
    return right, chosen


def main():
    splits = n_splits()
    warnings.filterwarnings("ignore")
    results = []
    with unpacked("15scenes.tar") as folder:
        if folder is None:
            return
        items = datasets.scenes15(folder / "15scenes")
        paths = [items.path(i) for i in range(len(items))]
        y = items["label"].astype(str)
        for seed in range(splits):
            rng = np.random.default_rng(seed)
            train = np.concatenate([rng.permutation(np.flatnonzero(y == name))[:100] for name in sorted(set(y))])
            test = np.setdiff1d(np.arange(len(y)), train)
            began = time.perf_counter()
            right, chosen = one_split(items, paths, y, train, test, seed)
            results.append(right)
            print(f"split {seed}, {time.perf_counter() - began:.0f} s", flush=True)
            for name, share in right.items():
                print(f"  {name}: {100 * share:.1f}%  {chosen.get(name, '')}", flush=True)
    rows = []
    for name in results[0]:
        shares = 100 * np.array([right[name] for right in results])
        rows.append([name, f"{shares.mean():.1f} +- {shares.std():.1f}", PAPER.get(name, "")])
    table(f"15-Scenes, 100 images a class, {len(results)} splits", ["model", "right, %", "the paper's"], rows)


if __name__ == "__main__":
    main()
