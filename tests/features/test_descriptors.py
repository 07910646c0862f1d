"""Descriptors of one's own: arrays, files of arrays and functions, as words and as channels."""

import numpy as np
import pytest
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from countinggrids.data.items import Items
from countinggrids.features import (
    BadItemError,
    Channels,
    Codebook,
    DenseSIFT,
    Descriptors,
    FunctionDescriptors,
)
from countinggrids.features.projection import fit_projection
from countinggrids.plot import painting

COLORS = np.array([[220, 30, 30], [30, 200, 30], [30, 30, 220], [200, 200, 40]], dtype=np.uint8)


def tiles(rng, shape=(6, 8)):
    """Draw an image of colored tiles of eight pixels; its descriptors are the colors, as one of four directions."""
    which = rng.integers(4, size=shape)
    image = COLORS[which].repeat(8, axis=0).repeat(8, axis=1)
    noise = rng.normal(scale=0.01, size=(*shape, 5))
    return image, np.eye(4, 5)[which] + noise, which


@pytest.fixture
def scene(tmp_path, rng):
    """Images in files, with a descriptor of every tile of each."""
    drawn = [tiles(rng) for _ in range(6)]
    for number, (image, tokens, _) in enumerate(drawn):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
        np.save(tmp_path / f"{number}.npy", tokens)
    items = Items({"path": [f"{n}.png" for n in range(6)], "label": list("ababab")}, tmp_path)
    return items, [tokens for _, tokens, _ in drawn], [which for *_, which in drawn]


def tokens_of(image):
    """Compute the descriptors of tiles."""
    means = image.reshape(image.shape[0] // 8, 8, image.shape[1] // 8, 8, 3).mean(axis=(1, 3))
    which = ((means[:, :, None] - COLORS) ** 2).sum(axis=-1).argmin(axis=-1)
    return np.eye(4, 5)[which]


def test_arrays_of_descriptors_become_bags_with_crops(scene):
    items, arrays, which = scene
    codebook = Codebook(4, random_state=0).fit(arrays)
    collection = cg.Collection.from_images(items, [codebook], (3, 2), images=arrays)
    assert collection.counts.shape == (6, 3 * 2 * 4)
    assert collection.counts.sum() == 6 * 48
    words = np.asarray(next(iter(codebook.transform(arrays[:1]))))
    assert len({(int(a), int(b)) for a, b in zip(words.ravel(), which[0].ravel(), strict=True)}) == 4
    crops = collection.vocabulary.patches
    for word in range(4):
        color = COLORS[which[0][words == word][0]]
        np.testing.assert_array_equal(crops[word, 4:12, 4:12], np.broadcast_to(color, (8, 8, 3)))
    assert codebook.patches_ is None  # the user's codebook stays as it was
    assert collection.items["rows"].tolist() == [6.0] * 6


def test_two_collections_of_one_codebook_have_the_same_features_whatever_their_crops(scene):
    items, arrays, _ = scene
    codebook = Codebook(4, random_state=0).fit(arrays)
    first, second = (
        cg.Collection.from_images(items.take(rows), [codebook], images=[arrays[i] for i in rows])
        for rows in ([0, 1], [2, 3, 4])
    )
    assert first.fingerprint == second.fingerprint
    model = cg.CountingGrid((4, 4), 2, random_state=0).fit(first)
    assert model.locate(second).shape == (3, 2)
    other = cg.Collection.from_images(items, [Codebook(4, random_state=1).fit(arrays[:2])], images=arrays)
    with pytest.raises(ValueError, match="must have the features of the model"):
        model.locate(other)


def test_files_are_mapped_and_give_the_same_bags(scene, tmp_path):
    items, arrays, _ = scene
    found = Descriptors(f"{tmp_path}/*.npy")
    assert isinstance(found[0], np.memmap)
    assert (len(found), found.n_channels, [each.shape for each in found[1:3]]) == (6, 5, [(6, 8, 5)] * 2)
    codebook = Codebook(4, random_state=0).fit(found)
    assert codebook.centers_.tobytes() == Codebook(4, random_state=0).fit(arrays).centers_.tobytes()
    from_files = cg.Collection.from_images(items, [codebook], images=found)
    from_arrays = cg.Collection.from_images(items, [codebook], images=arrays)
    assert from_files.counts.toarray().tobytes() == from_arrays.counts.toarray().tobytes()
    assert len(Descriptors.of_images([f"{n}.png" for n in (3, 1)], tmp_path)) == 2
    np.save(tmp_path / "all.npy", np.stack(arrays))
    whole = Descriptors(tmp_path / "all.npy")
    np.testing.assert_array_equal(whole[4], arrays[4])
    assert len(whole) == 6


def test_files_of_a_folder_are_in_natural_order(tmp_path):
    for n in (1, 2, 10):
        np.save(tmp_path / f"frame_{n}.npy", np.full((1, 2, 3), n))
    assert [each.max() for each in Descriptors(tmp_path)] == [1, 2, 10]


def test_a_function_is_an_extractor_whose_name_is_kept(scene, tmp_path):
    items, _, _ = scene
    codebook = make_pipeline(FunctionDescriptors(tokens_of), Codebook(4, random_state=0)).fit(
        [items.path(i) for i in range(6)]
    )[-1]
    collection = cg.Collection.from_images(items, [tokens_of, codebook])
    assert collection.steps[0].name_ == "tokens_of"
    assert collection.vocabulary.patches.shape == (4, 16, 16, 3)
    collection.save(tmp_path / "bags.cg")
    loaded = cg.Collection.load(tmp_path / "bags.cg")
    assert loaded.fingerprint == collection.fingerprint
    with pytest.raises(ValueError, match=r"must be the function tokens_of, which files do not hold; set it with"):
        loaded.bag([items.path(0)])
    loaded.steps[0].set_params(function=len)
    with pytest.raises(ValueError, match="len is not the extractor tokens_of that the features were made with"):
        loaded.bag([items.path(0)])
    loaded.steps[0].set_params(function=tokens_of)
    np.testing.assert_array_equal(loaded.bag([items.path(0)]).toarray(), collection.counts[:1].toarray())


def test_channels_are_counts_of_squared_activations(rng):
    arrays = [rng.normal(size=(2, 3, 7)) for _ in range(4)]
    channels = Channels().fit(arrays)
    bags = cg.bag(channels.transform(arrays), sections=(2, 1)).toarray()
    wanted = [((a / np.linalg.norm(a, axis=2, keepdims=True)) ** 2).sum(axis=1).ravel() for a in arrays]
    np.testing.assert_allclose(bags, wanted, rtol=1e-5)
    assert cg.CountingGrid((3, 3), 2, 2, random_state=0).fit(np.tile(bags, 2)).pi_.shape == (3, 3, 7)


def test_channels_are_shown_by_the_places_where_they_are_strongest(scene):
    items, arrays, _ = scene
    channels = Channels().fit(arrays)
    collection = cg.Collection.from_images(items, [channels], images=arrays)
    np.testing.assert_array_equal(collection.vocabulary.patches[:4, 8, 8], COLORS)


def test_soft_words_are_fractions_that_sum_to_one(rng):
    arrays = [rng.normal(size=(4, 5, 6)).astype(np.float32) for _ in range(5)]
    hard = Codebook(8, random_state=0).fit(arrays)
    soft = Codebook(8, random_state=0, soft=3).fit(arrays)
    assert hard.centers_.tobytes() == soft.centers_.tobytes()
    [feature_map] = soft.transform(arrays[:1])
    assert feature_map.shape == (4, 5, 3)
    np.testing.assert_allclose(feature_map.weights.sum(axis=-1), 1, rtol=1e-6)
    [words] = hard.transform(arrays[:1])
    best = np.take_along_axis(feature_map.values, feature_map.weights.argmax(axis=-1)[..., None], -1)[..., 0]
    np.testing.assert_array_equal(best, np.asarray(words))
    distances = ((arrays[0][0, 0] - soft.centers_) ** 2).sum(axis=1)
    nearest = np.sort(np.argsort(distances)[:3])
    np.testing.assert_array_equal(feature_map.values[0, 0], nearest)
    wanted = np.exp(-distances[nearest] / soft.scale_)
    np.testing.assert_allclose(feature_map.weights[0, 0], wanted / wanted.sum(), rtol=1e-4)


def test_fractional_counts_go_through_everything(scene, tmp_path):
    items, arrays, _ = scene
    arrays = [each + np.random.default_rng(i).normal(size=each.shape) for i, each in enumerate(arrays)]
    codebook = Codebook(4, random_state=0, soft=2).fit(arrays)
    collection = cg.Collection.from_images(items, [codebook], (2, 2), images=arrays)
    assert (collection.counts.data % 1 != 0).any()
    np.testing.assert_allclose(collection.counts.sum(axis=1), 48, rtol=1e-5)
    collection.save(tmp_path / "bags.cg")
    loaded = cg.Collection.load(tmp_path / "bags.cg")
    assert loaded.counts.toarray().tobytes() == collection.counts.toarray().tobytes()
    model = cg.CountingGrid((4, 4), 2, 2, random_state=0).fit(loaded)
    assert np.isfinite(model.score(loaded.coarsen((2, 2))))
    assert loaded.coarsen((1, 1)).counts.sum() == pytest.approx(6 * 48, rel=1e-5)
    assert painting.picture(model.pi_, loaded.vocabulary).ndim == 3
    classifier = cg.GridClassifier(cg.CountingGrid((4, 4), 2, 2), random_state=0)
    assert classifier.fit(loaded.counts, loaded.items["label"]).predict(loaded.counts).shape == (6,)


def test_a_projection_is_that_of_principal_components(rng):
    vectors = (rng.normal(size=(200, 6)) * [5, 3, 1, 1, 0.5, 0.1]).astype(np.float32)
    pca = PCA(3, whiten=True).fit(vectors)
    found = fit_projection(vectors, False, 3, True).apply(vectors)
    np.testing.assert_allclose(np.abs(found), np.abs(pca.transform(vectors)), rtol=0.02, atol=0.02)
    np.testing.assert_allclose(found.std(axis=0), 1, rtol=1e-3)
    plain = fit_projection(vectors, False, 3, False).apply(vectors)
    np.testing.assert_allclose(np.abs(plain), np.abs(PCA(3).fit_transform(vectors)), rtol=1e-3, atol=1e-3)


def test_words_by_angle_ignore_length(rng):
    vectors = rng.normal(size=(3, 4, 4, 6))
    lengths = rng.uniform(0.1, 9, (3, 4, 4, 1))
    codebook = Codebook(5, random_state=0, metric="cosine", pca=4).fit(list(vectors))
    same = [np.asarray(each).tolist() for each in codebook.transform(list(vectors * lengths))]
    assert same == [np.asarray(each).tolist() for each in codebook.transform(list(vectors))]
    np.testing.assert_allclose(np.linalg.norm(codebook.centers_, axis=1), 1, rtol=1e-5)


CODEBOOK = Codebook(3, random_state=0).fit(list(np.random.default_rng(0).random((4, 5, 5, 8))))
WRONG = {
    "channels first": (np.zeros((8, 5, 5)), r"have their channels first .*pass array.transpose\(1, 2, 0\)"),
    "other channels": (np.zeros((5, 5, 9)), r"have 9 channels and must have 8, as those that were fitted"),
    "a path": ("photo.jpg", "descriptors are a str and must be numbers of shape .*put an extractor such as"),
    "one number": (np.zeros(8), "descriptors are float64 of shape"),
    "no places": (np.zeros((0, 5, 8)), r"descriptors are float64 of shape \(0, 5, 8\)"),
    "texts": (np.full((2, 2, 8), "a"), "must be numbers"),
    "complex numbers": (np.zeros((2, 2, 8), complex), "must be numbers"),
    "not a number": (np.full((2, 2, 8), np.nan), "have NaN or infinity and must be finite"),
    "infinity": (np.full((2, 2, 8), np.inf), "have NaN or infinity and must be finite"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_are_no_descriptors_is_refused(what):
    array, message = WRONG[what]
    for step in (CODEBOOK, Channels().fit([np.zeros((1, 1, 8))])):
        with pytest.raises(BadItemError, match=message):
            list(step.transform([array]))


def test_channels_first_are_noticed_before_anything_is_learned(tmp_path):
    arrays = [np.random.default_rng(i).random((384, 16, 16)) for i in range(2)]
    for step in (Codebook(3), Channels()):
        with pytest.raises(BadItemError, match=r"\(384, 16, 16\) have their channels first and must be"):
            step.fit(arrays)
    np.save(tmp_path / "a.npy", arrays[0])
    with pytest.raises(ValueError, match=r"a.npy of shape .* has its channels first .*save array.transpose\(1, 2, 0\)"):
        Descriptors(tmp_path)
    for shape in ((60, 80, 3), (90, 31, 64), (5, 8, 8)):
        Codebook(3, n_samples=100).fit([np.random.default_rng(0).random(shape)])


@pytest.mark.parametrize("shape", [(128, 30, 40), (64, 28, 28), (64, 112, 112), (32, 8, 8)])
def test_channels_first_are_noticed_though_maps_are_large(shape):
    with pytest.raises(BadItemError, match="have their channels first"):
        Channels().fit([np.zeros(shape)])


def test_arrays_of_several_images_are_refused_as_one():
    for step in (Codebook(3), Channels()):
        with pytest.raises(BadItemError, match=r"have shape \(1, 6, 8, 16\) and must have shape .*one array for each"):
            step.fit([np.ones((1, 6, 8, 16))] * 3)


def test_steps_must_end_with_fitted_words_or_channels(scene):
    items, arrays, _ = scene
    with pytest.raises(NotFittedError, match="This Codebook instance is not fitted yet"):
        cg.Collection.from_images(items, [Codebook(4)], images=arrays)
    with pytest.raises(ValueError, match=r"steps ends with FunctionDescriptors, .* add a fitted Codebook or Channels"):
        cg.Collection.from_images(items, [tokens_of])


def test_items_can_be_paths(scene):
    items, arrays, _ = scene
    codebook = Codebook(4, random_state=0).fit(arrays)
    paths = [items.path(i) for i in range(6)]
    collection = cg.Collection.from_images(paths, [codebook], images=arrays)
    assert collection.items["path"].tolist() == [str(path) for path in paths]
    assert collection.vocabulary.patches is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "manhattan"}, "metric='manhattan' must be 'euclidean' or 'cosine'"),
        ({"pca": 0}, "pca=0 must be None or a number of components"),
        ({"pca": 9}, "pca=9 must be at most the 8 channels"),
        ({"soft": 0}, "soft=0 must be from 1 to n_words=3"),
        ({"soft": 4}, "soft=4 must be from 1 to n_words=3"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Codebook(3, **options).fit(list(np.zeros((2, 4, 4, 8))))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 8)), r"x.npy holds float64 of shape \(4, 8\) and must hold descriptors of shape \(rows"),
        (np.zeros((0, 2, 8)), "must hold descriptors"),
        (np.array(["a"]), "must hold descriptors"),
    ],
    ids=["two axes", "nothing", "texts"],
)
def test_files_of_something_else_are_refused_at_once(tmp_path, array, message):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ValueError, match=message):
        Descriptors(tmp_path / "x.npy")


def test_files_that_are_broken_missing_or_of_two_kinds_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"none/\*.npy' names no file; expected .npy files"):
        Descriptors(tmp_path / "none" / "*.npy")
    np.save(tmp_path / "a.npy", np.zeros((2, 2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 2, 4)))
    with pytest.raises(ValueError, match=r"a.npy has 3 channels and .*b.npy has 4; expected files of one extractor"):
        Descriptors(tmp_path)
    (tmp_path / "b.npy").write_bytes(b"\x93NUMPY nonsense")
    with pytest.raises(ValueError, match=r"b.npy is no array of descriptors"):
        Descriptors(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path} lacks 1 of 2 files, such as {tmp_path}/c.npy"):
        Descriptors.of_images(["a.jpg", "c.jpg"], tmp_path)
    with pytest.raises(ValueError, match="nowhere is not a folder"):
        Descriptors.of_images(["a.jpg"], tmp_path / "nowhere")
    np.save(tmp_path / "a.npy", np.full((2, 2, 3), np.nan))
    with pytest.raises(BadItemError, match=r"a.npy has NaN or infinity"):
        Codebook(2).fit(Descriptors(tmp_path / "a.npy"))


def test_numbers_of_arrays_and_items_must_agree(scene):
    items, arrays, _ = scene
    codebook = Codebook(4, random_state=0).fit(arrays)
    for given in (arrays[:5], [*arrays, arrays[0]]):
        with pytest.raises(ValueError, match=f"got {len(given)} images for 6 items"):
            cg.Collection.from_images(items, [codebook], images=given)
    with pytest.raises(ValueError, match="got 5 images for 6 items"):
        cg.Collection.from_images(items, [codebook], images=iter(arrays[:5]))
    with pytest.raises(ValueError, match="got more than 6 images for 6 items"):
        cg.Collection.from_images(items, [codebook], images=iter([*arrays, *arrays]))
    with pytest.raises(ValueError, match="without rows and columns"):
        cg.Collection.from_images(items, [codebook], images=[each.reshape(-1, 5) for each in arrays])
    with pytest.raises(ValueError, match="put an extractor such as DenseSIFT"):
        cg.Collection.from_images(items, [codebook])
    with pytest.raises(ValueError, match="steps holds a int and must hold extractors"):
        cg.Collection.from_images(items, [3])
    with pytest.raises(ValueError, match=r"steps=\[\] must hold at least one"):
        cg.Collection.from_images(items, [])


def test_a_function_that_returns_tokens_in_one_row_is_told_so():
    flat = FunctionDescriptors(lambda image: np.zeros((12, 5)))
    with pytest.raises(ValueError, match=r"returned an array of shape \(12, 5\); expected \(rows, columns, channels\)"):
        list(flat.transform([np.zeros((8, 8, 3), np.uint8)]))


def test_images_that_cannot_be_read_are_named_or_left_out(scene, tmp_path):
    items, arrays, _ = scene
    (tmp_path / "2.png").write_bytes(b"no image")
    codebook = Codebook(4, random_state=0).fit(arrays)
    with pytest.raises(BadItemError, match=r"2.png cannot be read"):
        cg.Collection.from_images(items, [FunctionDescriptors(tokens_of), codebook])
    some = cg.Collection.from_images(items, [FunctionDescriptors(tokens_of, on_error="skip"), codebook])
    assert (len(some), [each.place for each in some.skipped]) == (5, [2])
    assert cg.Collection.from_images(items, [codebook], images=arrays).vocabulary.patches is not None


def test_sift_has_the_same_words_as_before(rng):
    photos = [rng.integers(0, 255, (40, 56, 3), dtype=np.uint8) for _ in range(3)]
    codebook = make_pipeline(DenseSIFT(), Codebook(6, random_state=0)).fit(photos)
    assert codebook[-1].patches_.shape == (6, 16, 16, 3)
    for feature_map in codebook.transform(photos):
        assert feature_map.size == (40, 56)
