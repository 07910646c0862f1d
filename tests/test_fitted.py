"""Predictions go by what was fitted: parameters that are set afterwards count from the next fit on."""

import inspect
import pkgutil
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import countinggrids as cg
from countinggrids import baselines
from countinggrids.data import estimator_state
from countinggrids.explore import ItemMap
from countinggrids.explore.word_index import word_index
from countinggrids.features.text import Document
from estimators import BAGS, ESTIMATORS, GRID, QUICK, TEXTS, answers, as_bytes

pytestmark = pytest.mark.filterwarnings("ignore")

AT_PREDICTION = {
    "device": "where the work is done; it belongs to the machine",
    "n_jobs": "on how many threads the work is done",
    "verbose": "what is written while the work is done",
    "sparse_output": "the form of the answer, not what it says",
    "callback": "what is called while the work is done",
    "function": "it is part of no file, and compared by its name",
    "name": "compared with that of the fit",
    "on_error": "whether broken images are raised or left out",
}
STATELESS = {
    "DenseSIFT": "nothing is fitted: its parameters are what it computes",
    "OnnxTokens": "nothing is fitted: its parameters are what it computes",
    "Gist": "nothing is fitted: its parameters are what it computes",
}


def others(value):
    """Give other values of a parameter: one that makes no sense, and one that may."""
    if hasattr(value, "fit") or (isinstance(value, list) and hasattr(value[0], "fit")):
        return [cg.MixtureOfUnigrams(2, **QUICK)]
    if isinstance(value, bool):
        return ["changed", not value]
    if isinstance(value, int | float):
        return ["changed", value + 1, value / 2]
    if isinstance(value, tuple) and all(isinstance(n, int | float) for n in value):
        return ["changed", tuple(n + 1 for n in value), 1]
    return ["changed", None, 1]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_that_are_set_after_a_fit_do_not_change_predictions(name):
    estimator, X, y = ESTIMATORS[name]
    estimator.fit(X) if y is None else estimator.fit(X, y)
    before = answers(estimator, X, y)
    assert before
    for parameter, value in estimator.get_params().items():
        if parameter.rpartition("__")[2] in AT_PREDICTION:
            continue
        for other in others(value):
            estimator.set_params(**{parameter: other})
            for what, answer in answers(estimator, X, y).items():
                assert answer == before[what], f"{what} depends on {parameter}, set to {other!r}"
        estimator.set_params(**{parameter: value})


def test_every_estimator_is_tried():
    packages = [import_module(f"countinggrids.{name}") for name in ("meta", "baselines", "features", "models")]
    modules = [import_module(f"{p.__name__}.{m.name}") for p in packages for m in pkgutil.iter_modules(p.__path__)]
    found = {
        value.__name__
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, BaseEstimator)
        and value.__module__.startswith("countinggrids")
        and value.__init__ is not object.__init__
        and any("__init__" in vars(base) for base in value.__mro__[:-1] if base.__module__ == value.__module__)
    }
    found -= {"GridModel", "OutsideExtractor"}  # base classes
    found |= {"Channels", "StandardizedVectors"}  # they have no parameters
    assert found == {type(estimator).__name__ for estimator, *_ in ESTIMATORS.values()} | set(STATELESS)


GRIDS = [name for name, (model, *_) in ESTIMATORS.items() if isinstance(model, cg.models.GridModel)]


@pytest.mark.parametrize("name", GRIDS)
def test_a_model_that_is_saved_after_its_parameters_were_set_predicts_the_same(name, tmp_path):
    model, X, _ = ESTIMATORS[name]
    before = answers(model.fit(X), X, None)
    given = model.get_params()
    changes = {"anneal": None, "location_prior": "exact", "window": (9, 9), "n_components": 7}
    changes |= {"dtype": "float64" if model.dtype == "float32" else "float32"}
    model.set_params(**{key: value for key, value in changes.items() if key in given})
    model.save(tmp_path / "model")
    assert answers(cg.load(tmp_path / "model"), X, None) == before
    model.set_params(**given)


@pytest.mark.parametrize("name", ["colors", "textons", "labels", "words"])
def test_an_extractor_that_is_kept_after_its_parameters_were_set_extracts_the_same(name):
    extractor, X, _ = ESTIMATORS[name]
    before = answers(extractor.fit(X), X, None)
    given = extractor.get_params()
    changes = {"step": 7, "patch": 3, "max_side": 9, "stop_words": None, "lowercase": False}
    extractor.set_params(**{key: value for key, value in changes.items() if key in given})
    [again] = estimator_state.from_state(*estimator_state.to_state([extractor]))
    assert answers(again, X, None) == before
    extractor.set_params(**given)


def test_a_map_goes_by_what_was_fitted():
    collection = cg.Collection.from_texts([Document(text) for text in TEXTS])
    model = cg.CountingGrid(**GRID).fit(collection.counts)

    def shown():
        item_map = ItemMap(model, collection)
        facts, levels = word_index(item_map)
        return as_bytes([item_map.places, item_map.usage, item_map.locate(collection.counts[:1])]), facts, levels

    before = shown()
    model.set_params(grid=(9, 9), window=(3, 3), sections=3, anneal=None, dtype="float64")
    assert shown() == before


def test_learning_on_wants_the_shapes_and_the_dtype_that_were_fitted():
    model = cg.CountingGrid(**GRID).fit(BAGS)
    for changes in ({"window": (3, 3)}, {"grid": (6, 6)}, {"dtype": "float64"}):
        other = cg.CountingGrid(**GRID).fit(BAGS).set_params(**changes)
        before = other.pi_.tobytes()
        with pytest.raises(ValueError, match="must be that of the first batch"):
            other.partial_fit(BAGS)
        assert other.pi_.tobytes() == before
    model.set_params(anneal=None).partial_fit(BAGS)
    assert model.inverse_temperature_ == 1


def test_a_fit_that_fails_leaves_the_estimator_as_it_was():
    def fail(now):
        raise KeyboardInterrupt

    model = cg.CountingGrid(**GRID)
    with pytest.raises(KeyboardInterrupt):
        model.fit(BAGS, callback=fail)
    with pytest.raises(NotFittedError):
        model.transform(BAGS)
    before = answers(model.fit(BAGS), BAGS, None)
    with pytest.raises(KeyboardInterrupt):
        model.fit(BAGS[:, :7], callback=fail)
    assert answers(model, BAGS, None) == before
    with pytest.raises(ValueError, match="sample_weight is zero"):
        baselines.LDA().fit(BAGS, sample_weight=np.zeros(30))
    classifier = cg.GridClassifier(cg.CountingGrid(**GRID))
    with pytest.raises(ValueError, match="class 'b' has n_samples=1 bag but must"):
        classifier.fit(BAGS, ["a"] * 29 + ["b"])
    with pytest.raises(NotFittedError):
        classifier.predict(BAGS)
