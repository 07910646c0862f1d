"""Codebook, Colors, Textons and LabelMaps: learned from a bounded sample, the same for the same seed."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_sample_images
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from countinggrids.features import BadItemError, Codebook, Colors, DenseSIFT, LabelMaps, Stream, Textons, kmeans

PHOTOS = [photo[::3, ::3] for photo in load_sample_images().images]
CROPS = [photo[i : i + 64, i : i + 80] for photo in PHOTOS for i in (0, 20, 40)]
EXTRACTORS = {
    "sift": make_pipeline(DenseSIFT(), Codebook(12, random_state=0)),
    "colors": Colors(12, step=4, random_state=0),
    "textons": Textons(12, n_samples=2000, random_state=0),
}


@pytest.mark.parametrize("name", EXTRACTORS)
def test_maps_hold_labels_and_can_be_bagged(name):
    extractor = clone(EXTRACTORS[name]).fit(CROPS)
    maps = list(extractor.transform(CROPS))
    assert all(np.asarray(each).min() >= 0 and np.asarray(each).max() < 12 for each in maps)
    X = cg.bag(maps, (2, 2), 12)
    assert X.sum(axis=1).tolist() == [np.asarray(each).size for each in maps]


@pytest.mark.parametrize("name", EXTRACTORS)
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(name):
    maps = []
    for n_jobs in (1, 3):
        extractor = clone(EXTRACTORS[name])
        extractor.set_params(**{"densesift__n_jobs" if name == "sift" else "n_jobs": n_jobs})
        maps.append([np.asarray(each).tobytes() for each in extractor.fit(CROPS).transform(CROPS)])
    assert maps[0] == maps[1]


@pytest.mark.parametrize("name", EXTRACTORS)
def test_maps_do_not_depend_on_the_order_of_files(name):
    extractor = clone(EXTRACTORS[name]).fit(CROPS)
    forth = [np.asarray(each).tobytes() for each in extractor.transform(CROPS)]
    back = [np.asarray(each).tobytes() for each in extractor.transform(CROPS[::-1])]
    assert forth == back[::-1]


@pytest.mark.parametrize("name", EXTRACTORS)
def test_generators_do_as_well_as_lists(name):
    extractor = clone(EXTRACTORS[name])
    extractor.fit(each for each in CROPS)
    from_list = [np.asarray(each).tobytes() for each in extractor.transform(CROPS)]
    assert [np.asarray(each).tobytes() for each in extractor.transform(iter(CROPS))] == from_list


def test_words_are_the_nearest_centers():
    rng = np.random.default_rng(0)
    descriptors = rng.random((5, 4, 6)).astype(np.float32)
    book = Codebook(3, random_state=0).fit([descriptors])
    [words] = book.transform([descriptors])
    distances = np.linalg.norm(descriptors[:, :, None] - book.centers_, axis=-1)
    np.testing.assert_array_equal(words, distances.argmin(axis=-1))
    assert book.patches_ is None


def test_a_word_is_shown_by_a_patch_that_is_labeled_with_it():
    sift, book = DenseSIFT(), Codebook(8, random_state=0)
    stream = sift.transform(CROPS)
    book.fit(stream)
    assert book.patches_.shape == (8, 16, 16, 3)
    patches = np.concatenate([each.cut(np.arange(np.prod(each.shape[:2]))) for each in stream])
    words = np.concatenate([np.asarray(each).ravel() for each in book.transform(stream)])
    for word, shown in enumerate(book.patches_):
        is_shown = (patches == shown[..., 0]).all(axis=(1, 2))
        assert set(words[is_shown]) == {word}


def test_blocks_do_not_change_assignment(monkeypatch):
    rng = np.random.default_rng(0)
    vectors, centers = rng.random((100, 5), np.float32), rng.random((7, 5), np.float32)
    whole = kmeans.nearest(vectors, centers)
    monkeypatch.setattr(kmeans, "BLOCK", 9)
    np.testing.assert_array_equal(kmeans.nearest(vectors, centers), whole)


def sample_of(sources, n_samples, seed=0, n_images=1000):
    """Draw numbers from lists of numbers."""
    stream = Stream(sources, np.asarray)
    [drawn] = kmeans.gather(stream, len, lambda rows, at: (rows[at],), n_samples, n_images, seed)
    return drawn


def test_a_sample_is_bounded_and_every_row_is_equally_likely():
    sources = [np.arange(0, 10), np.arange(10, 200), np.arange(200, 203)]
    times = np.zeros(203)
    for seed in range(600):
        drawn = sample_of(iter(sources), 40, seed)
        assert len(drawn) == len(set(drawn.tolist())) == 40
        times[drawn] += 1
    expected = 600 * 40 / 203
    assert np.abs(times - expected).max() < 5 * np.sqrt(expected)


def test_a_short_source_is_taken_whole_and_a_long_list_in_part():
    assert sample_of([[1, 2], [3]], 10).tolist() == [1, 2, 3]
    assert len(sample_of([[i] for i in range(50)], 100, n_images=7)) == 7
    assert len(sample_of(iter([[i] for i in range(50)]), 100, n_images=7)) == 50


def test_too_few_vectors_are_refused():
    with pytest.raises(ValueError, match="n_clusters=200 must be at most the number of vectors, 6"):
        Codebook().fit([np.zeros((2, 3, 4))])
    with pytest.raises(ValueError, match="the images have no features, and 0 were skipped; expected at least one"):
        Codebook().fit([])
    with pytest.raises(ValueError, match=r"1 were skipped \(the first: nowhere\.jpg does not exist"):
        Colors(on_error="skip").fit(["nowhere.jpg"])
    with pytest.raises(ValueError, match="n_samples=0 and n_images=1000 must be at least 1"):
        Codebook(n_samples=0).fit([np.zeros((2, 3, 4))])
    with pytest.raises(ValueError, match="n_clusters=0 must be at least 1"):
        Codebook(0).fit([np.zeros((2, 3, 4))])


@pytest.mark.parametrize("extractor", [DenseSIFT(step=0), DenseSIFT(patch=-3), Colors(step=0), Textons(max_side=0.5)])
def test_sizes_must_be_pixels(extractor):
    with pytest.raises(ValueError, match="must be a number of pixels of at least 1"):
        extractor.fit(CROPS).transform(CROPS)


def test_colors_that_are_few_are_kept_exactly():
    drawing = np.array([[[255, 0, 0], [0, 0, 255]], [[0, 255, 0], [255, 0, 0]]], np.uint8)
    colors = Colors(8).fit([drawing])
    [labels] = colors.transform([drawing])
    np.testing.assert_array_equal(colors.palette_[np.asarray(labels)], drawing)
    assert colors.vocabulary_.names == ("#0000ff", "#00ff00", "#ff0000")


def test_a_palette_can_be_given():
    colors = Colors(palette=[(0, 0, 0), (255, 255, 255)]).fit([])
    [labels] = colors.transform([np.array([[10, 250]], np.uint8)])
    assert np.asarray(labels).tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="must be at least two colors of three numbers from 0 to 255"):
        Colors(palette=[(0, 0, 300)]).fit([])


def test_blocks_of_pixels_are_averaged():
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[:2, :2] = 200
    [labels] = Colors(2, step=2, random_state=0).fit([pixels]).transform([pixels])
    assert labels.shape == (2, 3)
    assert (np.asarray(labels) == np.asarray(labels)[0, 0]).sum() == 1


def test_textons_look_like_the_photo():
    textons = Textons(30, n_samples=5000, random_state=0).fit(PHOTOS)
    [labels] = textons.transform(PHOTOS[:1])
    rows, columns = labels.corners()
    painted, times = np.zeros(PHOTOS[0].shape), np.zeros((*PHOTOS[0].shape[:2], 1))
    for i, y in enumerate(rows):
        for j, x in enumerate(columns):
            painted[y : y + 8, x : x + 8] += textons.patches_[np.asarray(labels)[i, j]]
            times[y : y + 8, x : x + 8] += 1
    painted /= np.maximum(times, 1)
    is_covered = times[..., 0] > 0
    assert np.corrcoef(painted[is_covered].ravel(), PHOTOS[0][is_covered].ravel())[0, 1] > 0.2


def test_textons_are_whitened():
    textons = Textons(20, n_samples=4000, random_state=0).fit(PHOTOS)
    values = textons._whitened(np.concatenate([_patches(photo) for photo in PHOTOS]))
    variances = np.linalg.eigvalsh(np.cov(values, rowvar=False))
    assert variances.max() < 1.3


def _patches(photo):
    from countinggrids.features.textons import cut

    return cut(photo, 8, 4).reshape(-1, 192)


XML = """<annotation><filename>street.jpg</filename><imagesize><nrows>40</nrows><ncols>60</ncols></imagesize>
<object><name>Building</name><deleted>0</deleted><polygon><username>x</username>
  <pt><x>0</x><y>0</y></pt><pt><x>59</x><y>0</y></pt><pt><x>59</x><y>39</y></pt><pt><x>0</x><y>39</y></pt></polygon></object>
<object><name> window </name><deleted>0</deleted><polygon>
  <pt><x>10</x><y>10</y></pt><pt><x>30</x><y>10</y></pt><pt><x>30</x><y>30</y></pt><pt><x>10</x><y>30</y></pt></polygon></object>
<object><name>car</name><deleted>1</deleted><polygon>
  <pt><x>0</x><y>0</y></pt><pt><x>9</x><y>0</y></pt><pt><x>9</x><y>9</y></pt></polygon></object></annotation>"""


def test_polygons_become_labels_with_small_things_on_top(tmp_path):
    path = tmp_path / "street.xml"
    path.write_text(XML)
    labels = LabelMaps(step=1).fit([path])
    assert labels.names_ == ["unlabeled", "building", "window"]
    [feature_map] = labels.transform([path])
    values = np.asarray(feature_map)
    assert values.shape == (40, 60)
    assert (values[20, 20], values[5, 5], values[35, 50]) == (2, 1, 1)
    assert (values == 2).sum() == 21 * 21


def test_rare_labels_and_unknown_ones_are_unlabeled(tmp_path):
    path = tmp_path / "street.xml"
    path.write_text(XML)
    labels = LabelMaps(n_labels=1, step=4).fit([path])
    assert labels.names_ == ["unlabeled", "building"]
    [feature_map] = labels.transform([path])
    assert set(np.unique(feature_map)) == {0, 1}


def test_label_images_are_read_by_their_index(tmp_path):
    from PIL import Image

    image = Image.fromarray(np.array([[0, 5], [5, 5]], np.uint8), mode="P")
    image.putpalette(list(range(256)) * 3)
    image.save(tmp_path / "a.png")
    labels = LabelMaps(step=1).fit([tmp_path / "a.png"])
    assert labels.names_ == ["unlabeled", "5", "0"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<annotation>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><annotation/>",
        "<annotation></annotation>",
        XML.replace("<nrows>40", "<nrows>40000000"),
        XML.replace("<nrows>40", "<nrows>many"),
        XML.replace("<nrows>40", "<nrows>inf"),
        XML.replace("<x>59</x>", "<x>right</x>"),
    ],
)
def test_bad_annotations_are_refused(tmp_path, content):
    path = tmp_path / "a.xml"
    path.write_text(content)
    with pytest.raises(BadItemError, match=r"a\.xml"):
        LabelMaps().fit([path])
