"""Files of estimators: what was fitted predicts the same bits after it was read, and nothing else is read."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from countinggrids import features
from countinggrids.data import container, estimator_file
from countinggrids.features.saving import Saveable
from estimators import BAGS, ESTIMATORS, GRID, PHOTOS, PLACES, answers, corners

pytestmark = pytest.mark.filterwarnings("ignore")

SAVEABLE = [name for name, (estimator, *_) in ESTIMATORS.items() if isinstance(estimator, Saveable)]
FUNCTIONS = {"function": {"function": corners}}
"""Parameters that files do not hold."""
GRIDS = [name for name in SAVEABLE if isinstance(ESTIMATORS[name][0], cg.models.GridModel)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "estimator.cg"


def fitted(name):
    estimator, X, y = ESTIMATORS[name]
    return (estimator.fit(X) if y is None else estimator.fit(X, y)), X, y


def rewrite(path, change=None, **arrays):
    """Write a file again, after a function changed its nodes, or with other arrays."""
    facts, stored = container.read(path, estimator_file.FORMAT, estimator_file.VERSION)
    held = {name: np.array(stored[name]) for name in stored}
    for key, array in arrays.items():
        [name] = [each for each in held if each.endswith("." + key)]
        held[name] = array
    if change:
        change(facts["nodes"])
    container.write(path, facts, held)


def test_every_public_estimator_outside_the_baselines_is_tried():
    public = {getattr(package, name) for package in (cg.meta, cg.models, features) for name in package.__all__}
    wanted = {each for each in public if isinstance(each, type) and issubclass(each, Saveable)}
    tried = {type(ESTIMATORS[name][0]) for name in SAVEABLE}
    assert wanted - tried == {cg.models.GridModel, features.DenseSIFT, features.Gist, features.OnnxTokens}


@pytest.mark.parametrize("name", SAVEABLE)
def test_an_estimator_that_was_read_predicts_the_same_bits(name, path):
    estimator, X, y = fitted(name)
    before = answers(estimator, X, y)
    assert before
    cg.save(estimator, path)
    loaded = cg.load(path).set_params(**FUNCTIONS.get(name, {}))
    assert type(loaded) is type(estimator)
    assert answers(loaded, X, y) == before
    assert container.read_facts(path)["format"] == "estimator"
    estimator.save(path)
    assert answers(cg.load(path).set_params(**FUNCTIONS.get(name, {})), X, y) == before


@pytest.mark.parametrize("extractor", [features.DenseSIFT(step=4), features.Gist(blocks=2)], ids=str)
def test_extractors_without_anything_to_learn_are_kept_too(extractor, path):
    extractor.save(path)
    assert answers(cg.load(path), PHOTOS, None) == answers(extractor, PHOTOS, None)


def test_what_is_read_can_be_fitted_and_saved_again(path, tmp_path):
    classifier, X, y = fitted("classifier")
    classifier.save(path)
    loaded = cg.load(path)
    loaded.save(tmp_path / "again.cg")
    assert (tmp_path / "again.cg").read_bytes() == path.read_bytes()
    assert answers(loaded.fit(X, y), X, y) == answers(classifier, X, y)


def test_pipelines_of_ours_are_kept(path):
    pipeline = make_pipeline(cg.BagScaler(50, 0.7), cg.GridClassifier(cg.CountingGrid(**GRID))).fit(BAGS, PLACES)
    cg.save(pipeline, path)
    assert cg.load(path).predict_proba(BAGS).tobytes() == pipeline.predict_proba(BAGS).tobytes()
    words = make_pipeline(features.DenseSIFT(), features.Codebook(5), features.Bagger(2), cg.CountingGrid(**GRID))
    cg.save(words.fit(PHOTOS), path)
    assert cg.load(path).transform(PHOTOS).tobytes() == words.transform(PHOTOS).tobytes()


def test_a_model_that_several_hold_is_written_once(path):
    space, *_ = fitted("scores")
    space.save(path)
    loaded = cg.load(path)
    assert [id(model) for group in loaded._groups for model in group] == [id(model) for model in loaded.models_]
    assert len(container.read_facts(path)["nodes"]) == 1 + len(space.models_) + 1  # with the estimator parameter


def test_labels_of_every_kind_come_back(path):
    for places in (PLACES == "hall", (PLACES == "hall") * 2 - 1, PLACES, PLACES.astype(object), PLACES.astype("U40")):
        model = cg.GridClassifier(cg.CountingGrid(**GRID)).fit(BAGS, places)
        model.save(path)
        loaded = cg.load(path)
        assert loaded.classes_.dtype == model.classes_.dtype
        assert loaded.classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LogisticRegression(), "LogisticRegression cannot be saved; use an estimator of countinggrids"),
        (make_pipeline(cg.BagScaler(), KMeans(2)), "KMeans cannot be saved"),
        (cg.CapacitySearch(cv=KFold(3)), r"CapacitySearch\(cv=KFold\(.*cannot be saved because it is a KFold; use"),
        (cg.CapacitySearch(scoring=lambda *_: 0.0), "cannot be saved because it is a function"),
        (features.Words(tokenizer=str.split), "cannot be saved because it is a function; use the name of a tokenizer"),
        ("model", "estimator is a str and must be an estimator"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_saved_is_named_before_a_file_is_touched(estimator, message, path):
    path.write_bytes(b"as before")
    with pytest.raises(ValueError, match=message):
        cg.save(estimator, path)
    assert path.read_bytes() == b"as before"


def set_fact(*keys, to):
    """Return a function that changes one value in the last node, or removes it."""

    def change(nodes):
        inside = nodes[-1]
        for key in keys[:-1]:
            inside = inside[key]
        inside[keys[-1]] = to

    return change


FACTS = {
    "a method": set_fact("attributes", "predict", to=3),
    "a property": set_fact("attributes", "__class__", to=3),
    "a class elsewhere": set_fact("class", to="os.system"),
    "an abstract class": set_fact("class", to="GridModel"),
    "no class": set_fact("class", to=["CountingGrid"]),
    "a parameter that there is not": set_fact("parameters", "color", to=3),
    "a text for a number": set_fact("parameters", "n_estimators", to="many"),
    "a model that is not there": set_fact("attributes", "models_", to=[[{"estimator": 99}], [{"estimator": 99}]]),
    "itself": set_fact("attributes", "models_", to=[[{"estimator": -1}], [{"estimator": -1}]]),
    "no models": set_fact("attributes", "models_", to=[[], []]),
    "numbers for models": set_fact("attributes", "models_", to=[[1], [2]]),
    "fewer models than labels": set_fact("attributes", "models_", to=[[{"estimator": 0}]]),
    "an unknown kind": set_fact("attributes", "log_prior_", to={"pickle": "a"}),
    "two kinds": set_fact("attributes", "log_prior_", to={"tuple": [], "array": "a"}),
    "an array that is not there": set_fact("attributes", "log_prior_", to={"array": "a"}),
    "a prior that is no array": set_fact("attributes", "log_prior_", to=[0.5, 0.5]),
    "another way to average": set_fact("attributes", "settings_", "namespace", "average", to="best"),
    "columns that are no number": set_fact("attributes", "n_features_in_", to="16"),
    "a record elsewhere": set_fact("attributes", "log_prior_", to={"record": ["Popen", {}]}),
    "nothing fitted": set_fact("attributes", to=None),
    "no number": lambda nodes: nodes[-1].pop("number"),
    "nodes that are none": lambda nodes: nodes.append(7),
}


@pytest.mark.parametrize("what", FACTS)
def test_files_that_no_classifier_has_written_are_refused(path, what):
    fitted("classifier")[0].save(path)
    rewrite(path, FACTS[what])
    with pytest.raises(ValueError, match=f"{path} is inconsistent") as caught:
        cg.load(path)
    assert "\n" not in str(caught.value)


ARRAYS = {
    "labels beyond the classes": ("neighbors", {"labels_": np.full(30, 9)}),
    "negative labels": ("neighbors", {"labels_": np.full(30, -3)}),
    "locations of one axis": ("neighbors", {"locations_": np.zeros((30, 1), int)}),
    "locations of fewer bags": ("neighbors", {"locations_": np.zeros((3, 2), int)}),
    "moves of other places": ("tracker", {"log_move": np.zeros((9, 9))}),
    "moves that are not numbers": ("tracker", {"log_move": np.full((3, 3), np.nan)}),
    "moves that are no probabilities": ("tracker", {"log_move": np.full((3, 3), 800.0)}),
    "regions of another grid": ("clusters", {"regions_": np.zeros((9, 9), int)}),
    "regions without a number": ("clusters", {"regions_": np.full((4, 4), 77)}),
    "words of no dimension": ("codebook", {"centers_": np.zeros((5, 0), np.float32)}),
    "words that are not numbers": ("codebook", {"centers_": np.full((5, 3), np.nan, np.float32)}),
    "colors beyond white": ("colors", {"palette_": np.full((4, 3), 999, np.float32)}),
    "textons of another patch": ("textons", {"mean_": np.zeros(9, np.float32)}),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_that_do_not_fit_together_are_refused(path, what):
    name, arrays = ARRAYS[what]
    fitted(name)[0].save(path)
    rewrite(path, **arrays)
    with pytest.raises(ValueError, match=f"{path} is inconsistent"):
        cg.load(path)


def test_characters_that_there_are_not_are_refused(path):
    fitted("classifier")[0].save(path)
    rewrite(path, classes_=np.full((2, 6), 0x7FFFFFFF, np.uint32))
    with pytest.raises(ValueError, match=r"is inconsistent .*holds no characters"):
        cg.load(path)


def test_a_file_of_another_kind_is_named(path):
    fitted("scaler")[0].save(path)
    with pytest.raises(ValueError, match="is a estimator and must be a collection"):
        cg.Collection.load(path)
    facts, arrays = container.read(path, "estimator", 1)
    container.write(path, facts | {"version": 9}, dict(arrays))
    with pytest.raises(ValueError, match="has version 9; this release reads version 1; upgrade it"):
        cg.load(path)


def test_a_damaged_file_is_named(path):
    fitted("neighbors")[0].save(path)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged: array"):
        cg.load(path)
