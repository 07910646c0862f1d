"""Every estimator of the package, small and quick, and all that can be asked of one."""

import numpy as np
import scipy.sparse as sp

import countinggrids as cg
from countinggrids import baselines, features
from countinggrids.plot import painting

RNG = np.random.default_rng(0)
BAGS = RNG.poisson(RNG.gamma(0.5, 3, (30, 16))).astype(np.float32) + 0.5
PLACES = np.repeat(["hall", "stairs"], 15)
IMAGES = RNG.random((20, 2 * 2 * 3))
PHOTOS = [RNG.integers(0, 255, (24, 20, 3), dtype=np.uint8) for _ in range(3)]
TEXTS = ["The cat sat on the mat", "a dog and the cat", "dogs and mats are not cats"]
QUICK = {"max_iter": 8, "tol": 1.0, "random_state": 0}
GRID = {"grid": (4, 4), "window": (2, 2), "anneal": (0.3, 1.5, 0.5), **QUICK}
SMALL = {"grid": (4, 4), "window": (2, 2), "max_iter": 3, "random_state": 0}


def corners(image):
    """Describe each block of four pixels by its first one."""
    return image[:24:4, :20:4] / 255


ESTIMATORS = {
    "counting grid": (cg.CountingGrid(**GRID), BAGS, None),
    "counting grid with sections": (cg.CountingGrid(**GRID, sections=2, location_prior="uniform"), BAGS, None),
    "elastic grid": (cg.ElasticGrid(**GRID, sections=2, slack=1), BAGS, None),
    "componential grid": (cg.ComponentialGrid((4, 4), (2, 2), **QUICK), BAGS, None),
    "mixture": (cg.MixtureOfUnigrams(3, **QUICK), BAGS, None),
    "spatial bag of words": (cg.SpatialBagOfWords(3, (2, 2), **QUICK), BAGS, None),
    "epitome of labels": (cg.DiscreteEpitome((4, 4), (2, 2), **QUICK, dtype="float64"), BAGS, None),
    "hybrid": (cg.HybridEpitome((4, 4), (2, 2), **QUICK), BAGS, None),
    "classifier": (
        cg.GridClassifier([cg.CountingGrid(**GRID), cg.MixtureOfUnigrams(2, **QUICK)], n_estimators=2, random_state=0),
        BAGS,
        PLACES,
    ),
    "search": (cg.CapacitySearch(cg.CountingGrid(**GRID), grids=(4,), windows=(2,), sections=(2,)), BAGS, PLACES),
    "tracker": (cg.PlaceTracker(cg.CountingGrid(**GRID), gamma=0.5, unknown=1.0), BAGS, PLACES),
    "tracker of a walk": (cg.PlaceTracker(baselines.RootBags(), new_place=True, tolerance=1), BAGS, np.arange(30)),
    "recognizer": (cg.PlaceRecognizer(grids=cg.CountingGrid(**GRID), tolerance=1, random_state=0), BAGS, None),
    "neighbors": (cg.GridNeighbors(cg.CountingGrid(**GRID), n_neighbors=3, weights="distance"), BAGS, PLACES),
    "neighbors on a fitted grid": (cg.GridNeighbors(cg.CountingGrid(**GRID).fit(BAGS)), BAGS, PLACES),
    "scores": (cg.ScoreSpace(cg.CountingGrid(**GRID)), BAGS, PLACES),
    "scores, compared": (cg.ScoreSpace(cg.CountingGrid(**GRID), compare="intersection"), BAGS, PLACES),
    "clusters": (cg.GridClusters(cg.CountingGrid(**GRID), n_clusters=2), BAGS, None),
    "scaler": (cg.BagScaler(40, 0.5), BAGS, None),
    "coarsener": (cg.BagCoarsener((1, 2), (2, 2)), BAGS, None),
    "LDA": (baselines.LDA(3, max_iter=5, random_state=0), BAGS, None),
    "LDA by section": (baselines.Tessellated(baselines.LDA(2, max_iter=5), (2, 2), random_state=0), BAGS, None),
    "reconfigurable": (baselines.ReconfigurableBags(2, (2, 2), max_iter=5, random_state=0), BAGS, None),
    "Polya": (baselines.PolyaMixture(2, max_iter=5, random_state=0), BAGS, None),
    "epitome": (baselines.Epitome(**SMALL), IMAGES, None),
    "stels": (baselines.StelEpitome(**SMALL, n_stels=2), IMAGES, None),
    "sprites": (baselines.FlexibleSprites((2, 2), n_init=1, max_iter=3, random_state=0), IMAGES, None),
    "views": (baselines.Views(2, random_state=0), IMAGES, None),
    "pyramid": (baselines.PyramidKernel((2, 2)), BAGS, None),
    "pyramid classifier": (baselines.PyramidClassifier((2, 2)), BAGS, PLACES),
    "epitomic places": (baselines.EpitomicPlaces(baselines.Epitome(**SMALL), sections=(2, 2)), BAGS, PLACES),
    "root bags": (baselines.RootBags(), BAGS, None),
    "TF-IDF": (baselines.TfidfBags(), BAGS, None),
    "FAB-MAP": (baselines.FabMap(threshold=1.0), BAGS, None),
    "sequences": (baselines.SequenceMatcher(length=3), BAGS, None),
    "standardized": (baselines.StandardizedVectors(), IMAGES, None),
    "VLAD": (baselines.VLAD(3, random_state=0), list(RNG.random((6, 4, 4, 3))), None),
    "chi-squared SVM": (baselines.HistogramSVM(), BAGS, PLACES),
    "intersection SVM": (baselines.HistogramSVM("intersection"), BAGS, PLACES),
    "codebook": (features.Codebook(5, random_state=0), list(RNG.random((4, 6, 6, 3))), None),
    "codebook of angles, soft": (
        features.Codebook(5, random_state=0, metric="cosine", pca=2, whiten=True, soft=2),
        list(RNG.random((4, 6, 6, 3))),
        None,
    ),
    "channels": (features.Channels(), list(RNG.random((4, 6, 6, 3))), None),
    "function": (features.FunctionDescriptors(corners), PHOTOS, None),
    "bagger": (features.Bagger((2, 2), n_features=9), list(RNG.integers(0, 9, (4, 6, 6))), None),
    "colors": (features.Colors(4, step=2, random_state=0), PHOTOS, None),
    "textons": (features.Textons(4, patch=5, step=3, max_side=22, random_state=0), PHOTOS, None),
    "labels": (features.LabelMaps(2, step=2), [photo[..., 0] // 64 for photo in PHOTOS], None),
    "words": (features.Words(stop_words=["the"]), TEXTS, None),
}
ASKED = {
    "transform", "predict", "locate", "score_samples", "free_energy", "perplexity", "score", "predict_proba",
    "predict_log_proba", "decision_function", "log_likelihoods", "kneighbors", "filter", "smooth", "viterbi",
    "log_likelihood", "segment", "similarity",
}  # fmt: skip


def as_bytes(answer):
    """Turn an answer of any kind into bytes to compare."""
    if isinstance(answer, tuple | list):
        return b"|".join(as_bytes(each) for each in answer)
    if sp.issparse(answer):
        return as_bytes([answer.data, answer.indices.astype(np.int64), answer.indptr.astype(np.int64)])
    if isinstance(answer, features.maps.FeatureMap):
        weights = np.zeros(0) if answer.weights is None else answer.weights
        return as_bytes([np.asarray(answer), weights, answer.origin, answer.step, answer.patch, answer.size])
    if isinstance(answer, features.stream.Stream):
        return as_bytes(list(answer))
    array = np.asarray(answer)
    return array.tobytes() if array.dtype != object else repr(array.tolist()).encode()


def answers(estimator, X, y):
    """Ask a fitted estimator everything that can be asked."""
    found = {}
    for name in sorted(ASKED):
        if hasattr(estimator, name):
            labelled = name == "score" and y is not None
            found[name] = as_bytes(getattr(estimator, name)(X, y) if labelled else getattr(estimator, name)(X))
    if hasattr(estimator, "sample"):
        found["sample"] = as_bytes(estimator.sample(3, 9, random_state=0))
        found["capacity"] = as_bytes(estimator.capacity)
        found["coverage"] = as_bytes(painting.coverage(estimator))
    if hasattr(estimator, "get_feature_names_out"):
        found["names"] = as_bytes(list(estimator.get_feature_names_out()))
    if hasattr(estimator, "vocabulary_"):
        found["vocabulary"] = repr(estimator.vocabulary_).encode()
    return found
