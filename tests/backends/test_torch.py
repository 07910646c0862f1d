"""The same EM on torch tensors: the results of NumPy, in blocks that bound the memory of the device."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from cases import GEOMETRIES, POOL, as_bags, random_counts, random_grid
from countinggrids.backends import ThreadsBackend
from countinggrids.backends.torch import TorchBackend, _dense
from countinggrids.core import arrays, em
from countinggrids.data.table import Table
from countinggrids.kernels import threads
from countinggrids.kernels.counts import DenseCounts, SparseCounts

torch = pytest.importorskip("torch", reason="needs torch: pip install 'countinggrids[torch]' brings it")
pytest.importorskip("array_api_compat", reason="needs array-api-compat: pip install 'countinggrids[torch]' brings it")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("error:The given NumPy array is not writable"),
]
N_FEATURES = 4
ETAS = {"none": np.zeros(N_FEATURES), "scalar": np.full(N_FEATURES, 0.3), "vector": np.array([0.5, 0.0, 1.5, 0.2])}
TOLERANCES = {"float64": 1e-10, "float32": 1e-4}
MODELS = {
    "counting grid, 1 axis": (cg.CountingGrid(9, 4), 1),
    "counting grid": (cg.CountingGrid((7, 6), (4, 3)), 1),
    "counting grid, 3 axes": (cg.CountingGrid((4, 3, 5), (2, 2, 3)), 1),
    "a longer axis than bands are for": (cg.CountingGrid((70, 3), (6, 2)), 1),
    "tessellated, 1 axis": (cg.CountingGrid(8, 4, 2), 2),
    "tessellated": (cg.CountingGrid((7, 6), (4, 4), (2, 4)), 8),
    "tessellated, 3 axes": (cg.CountingGrid((4, 4, 3), 2, (2, 1, 2)), 4),
    "elastic, 1 axis": (cg.ElasticGrid(8, 4, 2), 2),
    "elastic": (cg.ElasticGrid((7, 6), (4, 4), (2, 4), slack=(1, 2)), 8),
    "elastic hybrid": (cg.ElasticGrid((6, 5), (4, 2), (2, 1), (4, 2)), 8),
    "mixture of unigrams": (cg.MixtureOfUnigrams(6), 1),
    "spatial bag of words": (cg.SpatialBagOfWords(5, (2, 2)), 4),
    "discrete epitome, 1 axis": (cg.DiscreteEpitome(7, 3), 3),
    "discrete epitome": (cg.DiscreteEpitome((6, 5), (2, 3)), 6),
    "discrete epitome, 3 axes": (cg.DiscreteEpitome((3, 4, 3), (2, 2, 1)), 4),
    "hybrid, 1 axis": (cg.HybridEpitome(7, 4, 2), 4),
    "hybrid": (cg.HybridEpitome((6, 5), (4, 2)), 8),
    "hybrid, 3 axes": (cg.HybridEpitome((4, 3, 4), 2, (2, 1, 1)), 8),
}


def counts_of(rng, n_sections, n_bags=30):
    """Bags of two kinds, so that there is something to learn, with features that few of them have."""
    rates = rng.gamma(0.5, 1, (2, n_sections * N_FEATURES))[rng.integers(2, size=n_bags)]
    counts = rng.poisson(rates)
    counts[:, 0] += 1
    return counts


def both(model, X, fit=lambda model, X: model.fit(X), **options):
    """Fit a model with NumPy and with torch."""
    given = {"random_state": 0, "anneal": None, "max_iter": 6, "tol": 0} | options
    models = [type(model)(**model.get_params() | given | {"device": device}) for device in (None, "cpu")]
    return [fit(each, X) for each in models]


def assert_same(ours, theirs, X, tolerance):
    for name in ("pi_", "log_prior_", "history_"):
        if hasattr(ours, name):
            given, wanted = getattr(theirs, name), getattr(ours, name)
            assert type(given) is np.ndarray
            assert given.dtype == wanted.dtype
            np.testing.assert_allclose(given, wanted, rtol=tolerance, atol=tolerance, err_msg=name)
    np.testing.assert_allclose(theirs.transform(X), ours.transform(X), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(theirs.score_samples(X), ours.score_samples(X), rtol=tolerance, atol=tolerance)
    assert theirs.score_samples(X).dtype == np.float64


@pytest.mark.parametrize("counts_kind", [DenseCounts, SparseCounts])
@pytest.mark.parametrize("row", GEOMETRIES)
@pytest.mark.parametrize(("eta", "kind"), [("none", "exact"), ("scalar", "smoothed"), ("vector", "uniform")])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_one_iteration_agrees_with_numpy(rng, row, eta, kind, counts_kind, dtype):
    geometry = GEOMETRIES[row]
    bags = as_bags(random_counts(rng, geometry), geometry, counts_kind, rng.uniform(size=6), dtype)
    grid = random_grid(rng, geometry, dtype=dtype)
    results = []
    for backend, held in ((ThreadsBackend(POOL), bags), (TorchBackend("cpu", dtype), _dense(bags))):
        here = backend.place(grid)
        statistics = backend.e_step([held], here, geometry, 0.8)
        new = em.m_step(here, statistics, geometry, np.tile(ETAS[eta], geometry.groups), kind, backend.pool)
        results.append([*statistics, *new])
    assert all(isinstance(part, torch.Tensor) for part in (statistics.A, new.pi, new.log_prior))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@pytest.mark.parametrize("row", MODELS)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_short_fit_agrees_with_numpy(rng, row, dtype, form):
    model, n_sections = MODELS[row]
    X = form(counts_of(rng, n_sections))
    weights = rng.uniform(size=X.shape[0])
    ours, theirs = both(model, X, lambda model, X: model.fit(X, sample_weight=weights), dtype=dtype)
    assert_same(ours, theirs, X, TOLERANCES[dtype])


@pytest.mark.parametrize("row", ["counting grid", "tessellated", "hybrid, 3 axes", "spatial bag of words"])
@pytest.mark.parametrize("options", [{"location_prior": "exact", "eta": 0.1}, {"eta": [0.1, 0, 2, 1], "n_init": 2}])
def test_annealing_with_candidates_agrees_with_numpy(rng, row, options):
    model, n_sections = MODELS[row]
    X = counts_of(rng, n_sections)
    ours, theirs = both(model, X, anneal="auto", max_iter=30, dtype="float64", **options)
    assert_same(ours, theirs, X, 1e-8)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_batch_after_batch_agrees_with_numpy(rng, dtype):
    X = counts_of(rng, 8)
    model = MODELS["tessellated"][0]
    stepwise = both(model, X, lambda model, X: model.partial_fit(X[:10]).partial_fit(X[10:]), dtype=dtype)
    assert_same(*stepwise, X, TOLERANCES[dtype])
    assert type(stepwise[1]._stream.counts) is np.ndarray
    annealed = both(model, X, batch_size=7, dtype="float64", anneal=(0.1, 1.2, 1), max_iter=20)
    assert_same(*annealed, X, 1e-8)


def test_bags_from_anywhere_give_the_same_model(rng, tmp_path):
    X = counts_of(rng, 8)
    model = clone(MODELS["hybrid"][0]).set_params(device="cpu", anneal=None, max_iter=4, random_state=0)
    wanted = model.fit(X).pi_
    np.save(tmp_path / "bags.npy", X.astype("float32"))  # mapped, and so read-only
    mirrored = X[:, ::-1].copy()[:, ::-1]
    read_only = X.astype("float32")
    read_only.flags.writeable = False
    for form in (tmp_path / "bags.npy", [X[:10], sp.csr_array(X[10:])], mirrored.astype("float32"), read_only):
        np.testing.assert_allclose(model.fit(form).pi_, wanted, rtol=1e-5, atol=1e-6)


class Spy(TorchDispatchMode):
    """Sees every tensor that torch makes: the largest, in bytes, and all dtypes."""

    def __init__(self):
        super().__init__()
        self.largest, self.dtypes = 0, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **kwargs or {})
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes())
                self.dtypes.add(tensor.dtype)
        return made


@pytest.mark.parametrize("row", ["counting grid", "tessellated", "hybrid", "spatial bag of words"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_blocks_bound_what_the_device_holds(rng, row, form):
    model, n_sections = MODELS[row]
    X = form(counts_of(rng, n_sections, 800))
    model = clone(model).set_params(device="cpu", anneal=None, max_iter=2, random_state=0, dtype="float32")

    def largest(block_entries):
        with threads.use(threads.Threads(1, block_entries=block_entries)), Spy() as spy:
            model.fit(X).transform(X)
        return spy.largest // 4

    grid_entries = model.fit(X).pi_.size
    assert largest(1000) <= max(1000, grid_entries)
    assert largest(2**23) > max(1000, grid_entries)  # so the spy can see a block that is too large


def test_bags_that_fit_into_a_block_are_moved_to_the_device_once(rng, tmp_path):
    geometry = GEOMETRIES["hybrid"]
    counts = random_counts(rng, geometry).astype("float32")
    np.save(tmp_path / "bags.npy", counts)
    in_memory, on_disk = Table.of(counts), Table.of(np.load(tmp_path / "bags.npy", mmap_mode="r"))

    def is_moved(table, block_entries):
        with threads.use(threads.Threads(1, block_entries=block_entries)):
            chunks = TorchBackend("cpu", "float32").prepare(table, np.ones(6, "f4"), N_FEATURES, geometry)
        return {isinstance(form.matrix, torch.Tensor) for bags in chunks for form in (bags.matched, bags.painted)}

    assert is_moved(in_memory, counts.size) == {True}
    assert is_moved(in_memory, counts.size - 1) == {False}
    assert is_moved(on_disk, counts.size) == {False}


def test_a_device_without_float64_is_never_asked_for_it(rng, monkeypatch):
    monkeypatch.setattr(arrays, "WITHOUT_FLOAT64", ("cpu",))
    X = counts_of(rng, 1)
    weights = rng.uniform(size=len(X))

    def fit(model, X):
        return model.fit(X, sample_weight=weights).partial_fit(X)

    with Spy() as spy:
        ours, theirs = both(MODELS["counting grid"][0], X, fit, dtype="float32", eta=0.2)
        assert_same(ours, theirs, X, 1e-4)
    assert torch.float32 in spy.dtypes
    assert torch.float64 not in spy.dtypes


def test_callbacks_receive_numpy_arrays(rng):
    seen = []
    cg.CountingGrid((7, 6), (4, 3), device="cpu").fit(
        counts_of(rng, 1), callback=lambda now: seen.append(now) or now.number == 2
    )
    assert type(seen[-1].pi) is type(seen[-1].log_prior) is np.ndarray
    assert seen[-1].pi.shape == (7, 6, N_FEATURES)


def test_a_resumed_fit_ends_with_the_same_bits(rng, tmp_path):
    X = counts_of(rng, 1)
    model = cg.CountingGrid((7, 6), (4, 3), anneal=None, max_iter=12, tol=0, device="cpu", random_state=0)
    wanted = model.fit(X).pi_

    def die(now):
        if now.number == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(X, checkpoint=tmp_path / "kept", callback=die)
    numbers = []
    model.fit(X, checkpoint=tmp_path / "kept", callback=lambda now: numbers.append(now.number))
    assert 1 < numbers[0] <= 7
    np.testing.assert_array_equal(model.pi_, wanted)


def test_a_saved_model_does_not_depend_on_the_device(rng, tmp_path):
    X = counts_of(rng, 1)
    model = cg.CountingGrid((7, 6), (4, 3), anneal=None, max_iter=3, device="cpu", random_state=0)
    model.partial_fit(X[:20]).save(tmp_path / "model")
    loaded = cg.load(tmp_path / "model")
    assert loaded.device is None
    np.testing.assert_array_equal(loaded.pi_, model.pi_)
    np.testing.assert_allclose(loaded.transform(X), model.transform(X), atol=1e-5)
    loaded.set_params(device="cpu").partial_fit(X[20:])
    np.testing.assert_array_equal(loaded.pi_, model.partial_fit(X[20:]).pi_)


MISSING = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card here")


@MISSING
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "gpu", "meta"])
def test_a_device_that_is_not_there_is_named_before_any_work(rng, name):
    X = counts_of(rng, 1)
    seen = "'cpu', 'mps'" if torch.backends.mps.is_available() else "'cpu'"
    text = f"device='{name}' must be one that torch finds here: {seen}; use one of these, or device=None for NumPy."
    fitted = cg.CountingGrid((7, 6), (4, 3), anneal=None, max_iter=1).fit(X).set_params(device=name)
    for work in (fitted.fit, fitted.partial_fit, fitted.transform, fitted.predict, fitted.score_samples):
        with pytest.raises(ValueError) as error:
            work(X)
        assert str(error.value) == text


def test_a_dtype_that_a_device_does_not_support_is_an_error(rng):
    with pytest.raises(ValueError) as error:
        cg.CountingGrid((7, 6), (4, 3), device="mps", dtype="float64").fit(counts_of(rng, 1))
    assert str(error.value) == ("device='mps' does not support dtype='float64'; use dtype='float32' or another device.")


@pytest.mark.parametrize("name", ["torch", "array_api_compat"])
def test_without_torch_the_error_says_what_to_install(rng, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as error:
        cg.CountingGrid((7, 6), (4, 3), device="cpu").fit(counts_of(rng, 1))
    assert str(error.value) == (
        "device='cpu' needs torch and array-api-compat; pip install \"countinggrids[torch]\", or use device=None."
    )


def test_the_comparison_with_numpy_can_fail(rng):
    X = counts_of(rng, 1)
    ours, theirs = both(MODELS["counting grid"][0], X, dtype="float64")
    theirs.log_prior_ = theirs.log_prior_ + 1e-6
    with pytest.raises(AssertionError):
        assert_same(ours, theirs, X, 1e-10)


QUICK = {"max_iter": 20, "tol": 1e-2, "random_state": 0, "dtype": "float64", "device": "cpu"}


@parametrize_with_checks([cg.CountingGrid((4, 4), (2, 2), **QUICK), cg.SpatialBagOfWords(3, sections=1, **QUICK)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
