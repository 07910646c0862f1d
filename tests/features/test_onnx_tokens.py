"""Tokens of a network in an ONNX file: a small one, which is built here."""

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from countinggrids.data.items import Items
from countinggrids.features import BadItemError, Codebook, OnnxTokens
from networks import PATCH, write_network

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture
def network(tmp_path):
    return write_network(tmp_path / "colors.onnx")


@pytest.fixture
def photos(tmp_path, rng):
    """Images of colored patches, in files."""
    palette = rng.integers(0, 256, (4, 3))
    drawn = [palette[rng.integers(4, size=(5, 7))].repeat(PATCH, 0).repeat(PATCH, 1) for _ in range(4)]
    for number, image in enumerate(drawn):
        Image.fromarray(image.astype(np.uint8)).save(tmp_path / f"{number}.png")
    return Items({"path": [f"{number}.png" for number in range(4)]}, tmp_path), drawn


def tokens(path, **options):
    return OnnxTokens(path, **{"patch": PATCH, "mean": (0, 0, 0), "std": (1, 1, 1)} | options)


def test_tokens_describe_the_patches_at_their_places(network, photos):
    items, drawn = photos
    for options in ({}, {"output": "last_hidden_state"}, {"output": "map", "skip": 0}):
        found = list(tokens(network, **options).transform([items.path(i) for i in range(4)]))
        for feature_map, image in zip(found, drawn, strict=True):
            np.testing.assert_allclose(feature_map.values, image[::PATCH, ::PATCH] / 255, atol=1e-6)
            assert (feature_map.patch, feature_map.step, feature_map.size) == (PATCH, PATCH, (20, 28))


def test_colors_are_standardized_and_images_fitted_to_whole_patches(network, rng):
    image = rng.integers(0, 256, (22, 29, 3), dtype=np.uint8)
    other = {"mean": (1, 2, 3), "std": (2, 2, 2)}
    [plain], [standard] = (tokens(network, **how).transform([image]) for how in ({}, other))
    assert plain.shape == (6, 7, 3)
    np.testing.assert_allclose(standard.values, (plain.values - [1, 2, 3]) / 2, atol=1e-5)
    [small] = tokens(network, max_side=12).transform([image])
    assert small.shape == (2, 3, 3)


def test_a_network_of_one_size_gets_images_of_that_size(tmp_path, rng):
    path = write_network(tmp_path / "fixed.onnx", size=(16, 24))
    [found] = tokens(path).transform([rng.integers(0, 256, (50, 40, 3), dtype=np.uint8)])
    assert (found.shape, found.size) == ((4, 6, 3), (50, 40))


def test_a_collection_keeps_the_name_and_the_digest_of_the_network(network, photos, tmp_path):
    items, _ = photos
    codebook = make_pipeline(tokens(network), Codebook(4, random_state=0)).fit([items.path(i) for i in range(4)])[-1]
    assert codebook.patches_.shape == (4, PATCH, PATCH, 3)
    collection = cg.Collection.from_images(items, [tokens(network), codebook])
    collection.save(tmp_path / "bags.cg")
    loaded = cg.Collection.load(tmp_path / "bags.cg")
    assert (loaded.steps[0].name_, len(loaded.steps[0].digest_)) == ("colors.onnx", 64)
    np.testing.assert_array_equal(loaded.bag([items.path(1)]).toarray(), collection.counts[1:2].toarray())
    model = cg.CountingGrid((4, 4), 2, random_state=0).fit(loaded)
    other = write_network(tmp_path / "other.onnx", weight=1.01)
    bagged = cg.Collection.from_images(items, [tokens(other), codebook])
    with pytest.raises(ValueError, match="must have the features of the model; bag it with the codebook of the fitted"):
        model.locate(bagged)
    renamed = network.rename(tmp_path / "renamed.onnx")
    again = cg.Collection.from_images(items, [tokens(renamed), codebook])
    assert model.locate(again).tolist() == model.locate(loaded).tolist()
    write_network(network, weight=1.01)
    with pytest.raises(
        ValueError, match=r"colors.onnx is not the extractor colors.onnx that the features were made with"
    ):
        loaded.bag([items.path(1)])
    network.unlink()
    with pytest.raises(ValueError, match=r"colors.onnx' is not a file; expected a network in an ONNX file"):
        loaded.bag([items.path(1)])


def test_weights_beside_the_file_are_part_of_it(network):
    before = tokens(network).fit(()).digest_
    network.with_name("colors.onnx_data").write_bytes(b"weights")
    network.touch()
    network.write_bytes(network.read_bytes())
    from countinggrids.features import onnx_tokens

    onnx_tokens._network_of.cache_clear()
    assert tokens(network).fit(()).digest_ != before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skip": 0}, r"returned 36 tokens for 5x7 patches of patch=4 pixels and skip=0; use skip=1"),
        ({"patch": 14}, r"returned 22 tokens for 1x2 patches of patch=14 .*; use the patch that the network was made"),
        ({"patch": 2}, r"returned 36 tokens for 10x14 patches of patch=2 .*; use the patch that the network was made"),
        ({"output": "mean"}, r"output='mean' of .* expected \(1, tokens, channels\) or .*map"),
        ({"output": "logits"}, "output='logits' is none of the outputs of .*mean, last_hidden_state, map"),
        ({"skip": -1}, "skip=-1 must be a number of tokens"),
        ({"mean": (0, 0)}, r"mean=\(0, 0\) must be three numbers"),
        ({"std": (1, 0, 1)}, r"std=\(1, 0, 1\) must be three numbers"),
        ({"mean": (np.nan, 0, 0)}, "must be three numbers"),
    ],
    ids=str,
)
def test_what_does_not_fit_the_network_is_named(network, photos, options, message):
    items, _ = photos
    with pytest.raises(ValueError, match=message):
        list(tokens(network, **options).transform([items.path(0)]))


def test_files_that_are_no_networks_are_refused_before_work(tmp_path, photos):
    items, _ = photos
    (tmp_path / "text.onnx").write_text("no network")
    (tmp_path / "empty.onnx").write_bytes(b"")
    for name in ("text.onnx", "empty.onnx", "0.png"):
        with pytest.raises(ValueError, match="is no network that onnxruntime reads") as caught:
            tokens(tmp_path / name).transform([items.path(0)])
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="is not a file"):
        tokens(tmp_path).transform([items.path(0)])
    words = write_network(tmp_path / "words.onnx", shape=[1, 3, 8, 8])
    assert tokens(words).transform([items.path(0)])
    gray = tmp_path / "gray.onnx"
    model = onnx.load(words)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    gray.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"takes pixels of shape \[1, 1, 8, 8\]; expected images|is no network"):
        tokens(gray).transform([items.path(0)])


def test_tokens_that_are_no_numbers_are_refused(tmp_path, photos):
    items, _ = photos
    path = write_network(tmp_path / "broken.onnx", weight=np.nan)
    with pytest.raises(BadItemError, match="returned NaN or infinity"):
        list(tokens(path).transform([items.path(0)]))


def test_the_extra_is_named_where_onnxruntime_is_missing(network, monkeypatch):
    import sys

    from countinggrids.features import onnx_tokens

    onnx_tokens._network_of.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r'pip install "countinggrids\[onnx\]"'):
        tokens(network).transform([])
