"""The last step from images to bags, and what `fit` refuses in its place."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from countinggrids.features import Bagger, Codebook, Colors, DenseSIFT, FeatureMap

RNG = np.random.default_rng(0)
PHOTOS = [RNG.integers(0, 255, (40, 48, 3), dtype=np.uint8) for _ in range(6)]
GRID = cg.CountingGrid((4, 4), (2, 2), sections=(2, 2), anneal=None, max_iter=5, tol=9.0, random_state=0)


def words(n=10):
    return make_pipeline(DenseSIFT(), Codebook(n, random_state=0)).fit(PHOTOS)


def test_a_pipeline_from_photos_to_places_has_a_row_for_each_photo():
    model = make_pipeline(DenseSIFT(), Codebook(10, random_state=0), Bagger((2, 2)), GRID).fit(PHOTOS)
    assert model.transform(PHOTOS[:3]).shape == (3, 16)
    maps = list(words().transform(PHOTOS))
    np.testing.assert_array_equal(model[:-1].transform(PHOTOS).toarray(), cg.bag(maps, (2, 2), 10).toarray())


def test_words_that_no_fitted_image_has_still_have_their_columns():
    palette = [(0, 0, 0), (120, 120, 120), (255, 255, 255)]
    black, white = np.zeros((8, 8, 3), np.uint8), np.full((8, 8, 3), 255, np.uint8)
    model = make_pipeline(Colors(palette=palette), Bagger()).fit([black])
    assert model.transform([white]).toarray().tolist() == [[0, 0, 64]]


def test_names_say_the_section_and_the_feature():
    bagger = Bagger((1, 2), n_features=2).fit([np.array([[0, 1]])])
    assert bagger.get_feature_names_out().tolist() == ["0_0_0", "0_0_1", "0_1_0", "0_1_1"]
    assert bagger.get_feature_names_out(["cup", "tea"]).tolist() == ["0_0_cup", "0_0_tea", "0_1_cup", "0_1_tea"]
    coarse = cg.BagCoarsener(1, (1, 2)).fit([[1, 2, 3, 4]])
    assert coarse.get_feature_names_out().tolist() == ["0_0_0", "0_0_1"]
    assert len(cg.BagScaler().fit([[1, 2, 3, 4]]).get_feature_names_out()) == 4


def test_weights_of_features_are_summed():
    values = np.array([[[0, 2], [1, 2]]])
    weights = np.array([[[0.75, 0.25], [0.5, 0.5]]], np.float32)
    soft = FeatureMap(values, (0, 0), 1, 1, (1, 2), weights=weights)
    assert cg.bag([soft], (1, 1), 3).toarray().tolist() == [[0.75, 0.5, 0.75]]
    assert cg.bag([soft], (1, 2), 3).toarray().tolist() == [[0.75, 0, 0.25, 0, 0.5, 0.5]]


@pytest.mark.parametrize(
    "maps",
    [
        lambda: words().transform(PHOTOS),
        lambda: list(words().transform(PHOTOS)),
        lambda: next(iter(words().transform(PHOTOS))),
        lambda: [RNG.integers(0, 9, (5, 6)) for _ in range(3)],
    ],
    ids=["stream", "list of feature maps", "feature map", "list of integer maps"],
)
@pytest.mark.parametrize(
    "fit",
    [
        lambda maps: cg.CountingGrid((4, 4), (2, 2)).fit(maps),
        lambda maps: cg.GridClassifier(cg.CountingGrid((4, 4), (2, 2))).fit(maps, [0, 1, 0]),
        lambda maps: cg.BagScaler().fit(maps),
    ],
)
def test_maps_are_not_taken_for_bags(fit, maps):
    with pytest.raises(ValueError, match=r"must be bags .*pass countinggrids\.bag\(X, sections\)"):
        fit(maps())


@pytest.mark.parametrize("shape", [(5, 7, 7), (5, 16, 16, 3)])
def test_stacks_of_maps_and_images_are_refused_with_what_to_do(shape):
    with pytest.raises(ValueError, match=r"array with dim \d.*; pass bags, one row each: countinggrids.bag"):
        cg.CountingGrid((4, 4), 2).fit(np.ones(shape, int))


def test_blocks_of_floats_are_bags():
    blocks = [RNG.poisson(2.0, (5, 12)).astype(np.float32) for _ in range(3)]
    assert len(cg.CountingGrid((4, 4), (2, 2), anneal=None, random_state=0).fit(blocks).predict(blocks)) == 15


@pytest.mark.parametrize(
    ("bagger", "maps", "message"),
    [
        (Bagger((2, 2)), [np.zeros(4, int)], "sections"),
        (Bagger(n_features=0), [np.zeros((4, 4), int)], "n_features=0 must be"),
        (Bagger(n_features=3), [np.full((4, 4), 3)], "has label 3 and must have labels from 0 to 2"),
        (Bagger(), [np.zeros((4, 4))], "quantize the features first"),
        (Bagger(), [], "at least one feature map"),
    ],
)
def test_wrong_use_is_refused(bagger, maps, message):
    with pytest.raises(ValueError, match=message):
        bagger.fit(maps)
