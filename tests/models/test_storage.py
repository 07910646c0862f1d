import json
import os
import struct

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

import countinggrids as cg
from countinggrids.data import container
from countinggrids.models import storage

X = np.random.default_rng(0).poisson(1.5, (30, 16))
MODELS = {
    "counting grid": cg.CountingGrid((6, 6), (4, 4), (2, 2), eta=[0.1, 0.2, 0.3, 0.4]),
    "mixture": cg.MixtureOfUnigrams(3, anneal=(0.1, 1.5, 0.7)),
    "spatial": cg.SpatialBagOfWords(3, (2, 2), dtype="float64"),
    "epitome": cg.DiscreteEpitome((4, 4), (2, 2), init=np.random.default_rng(1).random((4, 4, 4)), anneal=None),
    "hybrid": cg.HybridEpitome((4, 4), (2, 2), random_state=np.random.RandomState(3)),
}

SHAPES = {"grid": [6, 6], "window": [4, 4], "matched": [2, 2], "painted": [2, 2], "groups": 1}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_the_same_bits(path, name):
    model = MODELS[name].fit(X)
    model.save(path)
    loaded = cg.load(path)
    assert type(loaded) is type(model)
    for output in ("transform", "predict", "locate", "score_samples"):
        assert getattr(loaded, output)(X).tobytes() == getattr(model, output)(X).tobytes()
    for attribute in ("pi_", "log_prior_", "history_"):
        assert getattr(loaded, attribute).tobytes() == getattr(model, attribute).tobytes()
    assert (loaded.n_iter_, loaded.converged_, loaded.capacity) == (model.n_iter_, model.converged_, model.capacity)
    ours, theirs = loaded.sample(3, 9, random_state=1), model.sample(3, 9, random_state=1)
    assert ours[0].toarray().tobytes() == theirs[0].toarray().tobytes()


def test_a_stream_goes_on_where_it_was_saved(path):
    model = cg.CountingGrid((6, 6), 4, 2, random_state=0).partial_fit(X).partial_fit(X[:10])
    model.save(path)
    loaded = cg.load(path)
    assert loaded.partial_fit(X[10:]).pi_.tobytes() == model.partial_fit(X[10:]).pi_.tobytes()


def test_column_names_are_kept(path):
    frame = pd.DataFrame(X, columns=[f"word {i}" for i in range(16)])
    cg.MixtureOfUnigrams(2).fit(frame).save(path)
    assert cg.load(path).feature_names_in_.tolist() == list(frame.columns)


def test_a_saved_model_is_read_whatever_the_umask_says(path):
    MODELS["mixture"].fit(X).save(path)
    assert path.stat().st_mode & 0o600 == 0o600


def test_a_failing_save_leaves_the_old_file_whole(path, monkeypatch):
    model = MODELS["mixture"].fit(X)
    model.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_an_unfitted_model_is_not_saved(path):
    with pytest.raises(ValueError, match="not fitted"):
        cg.CountingGrid().save(path)
    assert not path.exists()


def test_every_truncation_is_refused(path):
    MODELS["counting grid"].fit(X).save(path)
    whole = path.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged or no file of countinggrids"):
            cg.load(path)


def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError):
        cg.load(path)


def rewritten(path, **changes):
    """Save a model, then change facts of it as an attacker or a later version would."""
    MODELS["counting grid"].fit(X).save(path)
    facts, arrays = container.read(path, storage.FORMAT, storage.VERSION)
    facts |= changes
    container.write(path, facts, arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 99}, "has version 99; this release reads version 2; upgrade it"),
        ({"version": 1}, "has version 1; this release reads version 2; make the model again"),
        ({"version": "1"}, "has no version"),
        ({"class": "os.system"}, "class 'os.system' is not one of CountingGrid"),
        ({"class": ["CountingGrid"]}, "is inconsistent"),
        ({"geometry": SHAPES | {"grid": [9, 9]}}, "is inconsistent"),
        ({"geometry": SHAPES | {"grid": [6.0, "6"]}}, "is inconsistent"),
        ({"geometry": [6, 6]}, "is inconsistent"),
        ({"inverse_temperature": 7.0}, "is inconsistent"),
        ({"location_prior": "flat"}, "is inconsistent"),
        ({"parameters": {"__class__": 1}}, "is inconsistent"),
        ({"parameters": None}, "is inconsistent"),
        ({"n_features_in": "many"}, "is inconsistent"),
        ({"stream": [1, 2]}, "is inconsistent"),
    ],
)
def test_hostile_and_future_files_are_refused(path, changes, message):
    rewritten(path, **changes)
    with pytest.raises(ValueError, match=message):
        cg.load(path)


def test_a_foreign_safetensors_file_is_refused(path):
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(ValueError, match="is a safetensors file but not one of countinggrids"):
        cg.load(path)


@pytest.mark.parametrize(
    "content", [b"\x80\x04K\x01.", b"PK\x03\x04", b"[" * 100_000, struct.pack("<Q", 2**62) + b"{}"]
)
def test_other_files_are_refused_and_nothing_in_them_runs(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or no file of countinggrids"):
        cg.load(path)


@pytest.mark.parametrize("array", ["pi", "log_prior"])
@pytest.mark.parametrize("change", [lambda a: a * np.nan, lambda a: a * 0, lambda a: a - 1, lambda a: a + 1e36])
def test_a_grid_of_impossible_numbers_is_refused(path, array, change):
    MODELS["counting grid"].fit(X).save(path)
    facts, arrays = container.read(path, storage.FORMAT, storage.VERSION)
    container.write(path, facts, dict(arrays) | {array: change(arrays[array])})
    with pytest.raises(ValueError, match=f"{array} holds numbers that no model has"):
        cg.load(path)


def test_a_file_without_digests_is_refused(path):
    MODELS["mixture"].fit(X).save(path)
    facts, arrays = container.read(path, storage.FORMAT, storage.VERSION)
    save_file(dict(arrays), path, {"countinggrids": json.dumps(facts)})
    with pytest.raises(ValueError, match="has no digest: it is damaged, or older than this format"):
        cg.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_a_compact_file_is_smaller_and_predicts_nearly_the_same(tmp_path, name):
    model = MODELS[name].fit(X)
    whole, small = tmp_path / "whole.st", tmp_path / "compact.st"
    model.save(whole)
    model.save(small, compact=True)
    loaded = cg.load(small)
    assert loaded.pi_.dtype == model.pi_.dtype
    assert loaded.pi_.shape == model.pi_.shape
    assert 0 < np.abs(np.log(loaded.pi_ / model.pi_)).max() < 0.1
    np.testing.assert_allclose(loaded.pi_.sum(axis=-1), 1, rtol=1e-6)
    assert loaded.log_prior_.tobytes() == model.log_prior_.tobytes()
    assert abs(loaded.perplexity(X) / model.perplexity(X) - 1) < 0.005
    assert cg.load(whole).pi_.tobytes() == model.pi_.tobytes()


def test_a_compact_file_takes_a_byte_for_each_probability(path):
    model = cg.CountingGrid((24, 24), 4, anneal=None, tol=10.0).fit(np.random.default_rng(0).poisson(1, (50, 200)))
    model.save(path, compact=True)
    assert model.pi_.size < path.stat().st_size < 1.2 * model.pi_.size


def test_a_compact_file_keeps_zeros_and_single_values(path):
    model = cg.CountingGrid((4, 4), 2, anneal=None, tol=10.0).fit(X[:, :4])
    model.pi_ = np.zeros_like(model.pi_)
    model.pi_[..., 0], model.pi_[..., 1] = 0.75, 0.25
    model.pi_[0, 0] = [1, 0, 0, 0]
    model.pi_[1, 1] = [1 - 2e-30, 1e-30, 1e-30, 0]
    model.save(path, compact=True)
    found = cg.load(path).pi_
    np.testing.assert_array_equal(found[0, 0], [1, 0, 0, 0])
    assert (found[..., 3] == 0).all()
    assert 0 < found[1, 1, 1] < 1e-11
    np.testing.assert_allclose(found[2, 2], [0.75, 0.25, 0, 0], rtol=0.06)


def test_a_compact_model_of_a_stream_goes_on(path):
    model = cg.CountingGrid((6, 6), 4, 2, random_state=0).fit(X)
    model.save(path, compact=True)
    before, after = model.partial_fit(X[:10]), cg.load(path).partial_fit(X[:10])
    np.testing.assert_allclose(after.pi_, before.pi_, rtol=0.2, atol=1e-3)


def rewrite_compact(path, **changed):
    """Save a compact model, then replace arrays of it."""
    MODELS["counting grid"].fit(X).save(path, compact=True)
    facts, arrays = container.read(path, storage.FORMAT, storage.VERSION)
    arrays = dict(arrays) | {
        name.replace("_", ".", 1): change(arrays[name.replace("_", ".", 1)]) for name, change in changed.items()
    }
    container.write(path, facts, {name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pi_codes": lambda a: a * 0}, "cells without any feature in row 0"),
        ({"pi_codes": lambda a: a.astype("i1")}, "pi.codes is int8"),
        ({"pi_codes": lambda a: a[:, :, :2]}, "pi.codes has shape"),
        ({"pi_codes": lambda a: a[0, 0, 0]}, "pi.codes has shape"),
        ({"pi_codes": lambda a: a[:3]}, "pi has shape"),
        ({"pi_codes": lambda _: None}, "is inconsistent"),
        ({"pi_scale": lambda a: a * np.nan}, "numbers that no compact model has"),
        ({"pi_scale": lambda a: a + 1e3}, "numbers that no compact model has"),
        ({"pi_scale": lambda a: a - 1e300}, "numbers that no compact model has"),
        ({"pi_scale": lambda a: -a}, "numbers that no compact model has"),
        ({"pi_scale": lambda a: a.astype("f4")}, "pi.scale float32"),
        ({"pi_scale": lambda a: a[:1]}, "pi.scale"),
        ({"pi_scale": lambda _: None}, "is inconsistent"),
        ({"log_prior": lambda a: a}, None),
    ],
)
def test_hostile_compact_files_are_refused(path, changed, message):
    if message is None:
        rewrite_compact(path)
        assert cg.load(path).pi_.shape == (6, 6, 4)
        return
    rewrite_compact(path, **changed)
    with pytest.raises(ValueError, match=message):
        cg.load(path)


def test_every_truncation_of_a_compact_file_is_refused(path):
    MODELS["counting grid"].fit(X).save(path, compact=True)
    whole = path.read_bytes()
    for length in [0, 9, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged or no file of countinggrids"):
            cg.load(path)
    changed = bytearray(whole)
    changed[-1] ^= 1
    path.write_bytes(bytes(changed))
    with pytest.raises(ValueError, match="does not match its digest"):
        cg.load(path)
