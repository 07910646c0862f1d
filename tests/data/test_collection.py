"""Collections: what is put in comes out, in one file, in parts, joined, and alike for new items."""

import mmap
import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_sample_images
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from countinggrids import datasets
from countinggrids.data import collection_file, container
from countinggrids.data.items import Items
from countinggrids.features import BadItemError, Codebook, Colors, DenseSIFT, LabelMaps, Textons, Vocabulary, Words
from countinggrids.features.text import Document

PHOTOS = [photo[::3, ::3] for photo in load_sample_images().images]
TEXTS = [
    Document("tea for two", "One", label="tea", time=3.0),
    Document("two cups", "Two", label="cups", time=1.0),
    Document("tea tea", "Three", label="tea", time=2.0),
]
PATH = "collection.cg"


def steps_of(name):
    """Make fitted steps that images go through."""
    if name == "sift":
        steps = [DenseSIFT(), Codebook(8, random_state=0)]
    elif name == "colours":
        steps = [Colors(8, step=4, random_state=0)]
    elif name == "textons":
        steps = [Textons(8, n_samples=1000, random_state=0)]
    else:
        steps = [LabelMaps(8, step=8)]
    sources = [photo[..., 0].astype(int) // 40 for photo in PHOTOS] if name == "labels" else PHOTOS
    make_pipeline(*steps).fit(sources)
    return steps, sources


def photo_collection(name="sift", sections=(2, 2)):
    steps, sources = steps_of(name)
    items = Items({"title": ["china", "flower"], "label": ["house", "plant"]})
    return cg.Collection.from_images(items, steps, sections, sources)


@pytest.mark.parametrize("name", ["sift", "colours", "textons", "labels"])
def test_a_loaded_collection_is_the_same_and_bags_alike(tmp_path, name):
    made = photo_collection(name)
    made.save(tmp_path / PATH)
    loaded = cg.Collection.load(tmp_path / PATH)
    assert (loaded.counts != made.counts).nnz == 0
    assert (loaded.sections, loaded.vocabulary.names) == (made.sections, made.vocabulary.names)
    assert loaded.vocabulary.kind == made.vocabulary.kind
    assert [loaded.items.row(i) for i in (0, 1)] == [made.items.row(i) for i in (0, 1)]
    for part in ("colors", "patches"):
        ours, theirs = getattr(loaded.vocabulary, part), getattr(made.vocabulary, part)
        assert (ours is None) == (theirs is None)
        assert ours is None or ours.tobytes() == theirs.tobytes()
    _, sources = steps_of(name)
    assert (loaded.bag(sources) != made.counts).nnz == 0


def test_texts_travel_too(tmp_path):
    made = cg.Collection.from_texts(TEXTS, Words(stop_words=["for"], ngram_range=(1, 2)))
    made.save(tmp_path / PATH)
    loaded = cg.Collection.load(tmp_path / PATH)
    assert loaded.items["text"].tolist() == [document.text for document in TEXTS]
    assert (loaded.bag(document.text for document in TEXTS) != made.counts).nnz == 0
    assert "text" not in cg.Collection.from_texts(TEXTS, keep_texts=False).items
    assert "link" not in made.items


def test_a_fitted_vocabulary_is_kept():
    words = Words().fit(["tea"])
    made = cg.Collection.from_texts(TEXTS, words)
    assert made.counts.toarray().tolist() == [[1], [2]]
    assert made.report["without_words"] == {"n": 1, "rows": {"": [2]}}


def test_a_collection_can_be_learnt_from(tmp_path):
    made = photo_collection("colours")
    model = cg.CountingGrid((6, 6), (4, 4), (2, 2), random_state=0, max_iter=300).fit(made.counts)
    made.save(tmp_path / PATH)
    loaded = cg.Collection.load(tmp_path / PATH)
    np.testing.assert_array_equal(model.locate(loaded.counts), model.locate(made.counts))


def test_arrays_stay_in_the_file_until_they_are_touched(tmp_path):
    photo_collection().save(tmp_path / PATH)
    counts = cg.Collection.load(tmp_path / PATH).counts
    for part in (counts.data, counts.indices, counts.indptr):
        while isinstance(part, np.ndarray):
            part = part.base
        assert isinstance(part.obj, mmap.mmap)


def test_parts_by_label_time_and_number():
    made = cg.Collection.from_texts(TEXTS)
    assert {name: len(part) for name, part in made.split("label").items()} == {"cups": 1, "tea": 2}
    before, after = made.split_time(2.0)
    assert (before.items["title"].tolist(), after.items["title"].tolist()) == (["Two"], ["One", "Three"])
    assert made.take([2, 0]).items["title"].tolist() == ["Three", "One"]
    assert len(made.take(np.zeros(3, bool))) == 0
    assert made.items.take(np.array([False, True, False]))["title"].tolist() == ["Two"]
    for wrong in (np.zeros(2, bool), [0.5], [[0]]):
        with pytest.raises(ValueError, match="must be a list of integers below 3, or a mask of length 3"):
            made.take(wrong)
    with pytest.raises(ValueError, match="use a collection of images for thumbnails"):
        made.thumbnail(0)
    with pytest.raises(KeyError, match="no column 'color'; use one of text, title, label, time"):
        made.split("color")


def test_joined_parts_are_the_whole():
    made = photo_collection()
    again = cg.Collection.join([made.take([0]), made.take([1])])
    assert (again.counts != made.counts).nnz == 0
    assert again.items["label"].tolist() == ["house", "plant"]
    with pytest.raises(ValueError, match="must have the same sections and features"):
        cg.Collection.join([made, made.coarsen((1, 1))])
    other = cg.Collection(
        made.counts,
        made.vocabulary,
        made.items,
        made.sections,
        [DenseSIFT(), Codebook(8, random_state=1).fit(DenseSIFT().transform(PHOTOS))],
    )
    with pytest.raises(ValueError, match="bag the second with the codebook of the first"):
        cg.Collection.join([made, other])


def test_tables_with_different_columns_are_joined():
    joined = Items.join([Items({"title": ["a"], "time": [1]}), Items({"title": ["b"], "label": ["x"]})])
    assert joined["label"].tolist() == ["", "x"]
    assert np.isnan(joined["time"][1])


def test_runs_end_where_time_jumps():
    items = Items({"sequence": ["a"] * 6 + ["b"] * 3, "time": [0, 1, 2, 5, 6, 7, 0, 1, 2]})
    assert items.run_lengths() == [3, 3, 3]
    assert Items({"sequence": ["a", "a", "b"]}).run_lengths() == [2, 1]
    assert Items({"title": ["a", "b"]}).run_lengths() == [2]


def test_joined_items_of_different_folders_still_find_their_files(tmp_path):
    parts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(PHOTOS[0]).save(tmp_path / name / "x.png")
        parts.append(datasets.folder(tmp_path / name))
    joined = Items.join(parts)
    assert [joined.path(i) for i in (0, 1)] == [tmp_path / "a" / "x.png", tmp_path / "b" / "x.png"]


def test_some_features_can_be_taken():
    made = photo_collection()
    part = made.take_features([1, 5])
    np.testing.assert_array_equal(
        part.counts.toarray(), made.counts.toarray().reshape(2, 4, 8)[:, :, [1, 5]].reshape(2, 8)
    )
    assert part.vocabulary.names == ("word 1", "word 5")
    assert (made.take_features([-1]).counts != made.take_features([7]).counts).nnz == 0
    with pytest.raises(IndexError):
        made.take_features([8])
    with pytest.raises(ValueError, match="has no extractors; use a collection made from images or texts"):
        part.bag(PHOTOS)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(4, 4), (2, 4), (4, 2)]))
def test_sections_add_up_and_finer_sections_give_coarser_ones(seed, fine):
    rng = np.random.default_rng(seed)
    maps = [rng.integers(5, size=rng.integers(1, 20, 2)) for _ in range(4)]
    items, vocabulary = Items({"title": list("abcd")}), Vocabulary("labels", tuple("vwxyz"))
    whole = cg.Collection(cg.bag(maps, (1, 1), 5), vocabulary, items, (1, 1))
    parts = cg.Collection(cg.bag(maps, fine, 5), vocabulary, items, fine)
    halves = cg.Collection(cg.bag(maps, (2, 2), 5), vocabulary, items, (2, 2))
    assert (parts.coarsen((1, 1)).counts != whole.counts).nnz == 0
    assert (parts.coarsen((2, 2)).counts != halves.counts).nnz == 0
    with pytest.raises(ValueError, match="must divide the collection's"):
        parts.coarsen((3, 3))


def test_thumbnails_are_made_when_asked_for(tmp_path):
    Image.fromarray(PHOTOS[0]).save(tmp_path / "a.png")
    items = datasets.folder(tmp_path)
    made = cg.Collection(sp.csr_array((1, 3)), Vocabulary("labels", ("a", "b", "c")), items)
    assert made.thumbnail(0, 32).shape == (21, 32, 3)
    made.save(tmp_path / PATH)
    os.makedirs(tmp_path / "moved")
    os.replace(tmp_path / "a.png", tmp_path / "moved" / "a.png")
    with pytest.raises(BadItemError, match=r"a\.png does not exist"):
        cg.Collection.load(tmp_path / PATH).thumbnail(0)
    assert cg.Collection.load(tmp_path / PATH, root=tmp_path / "moved").thumbnail(0).shape == (43, 64, 3)


def test_broken_images_are_left_out_with_their_items(tmp_path):
    for name in ("a", "b", "c"):
        Image.fromarray(PHOTOS[0]).save(tmp_path / f"{name}.png")
    (tmp_path / "b.png").write_bytes(b"broken")
    items = datasets.folder(tmp_path)
    steps = [Colors(4, step=8, random_state=0, on_error="skip").fit([PHOTOS[0]])]
    made = cg.Collection.from_images(items, steps)
    assert made.items["title"].tolist() == ["a", "c"]
    assert [(place, "b.png" in reason) for place, reason in made.skipped] == [(1, True)]
    steps[0].on_error = "raise"
    with pytest.raises(BadItemError, match=r"b\.png cannot be read"):
        cg.Collection.from_images(items, steps)


def test_every_file_broken_is_an_error(tmp_path):
    (tmp_path / "b.png").write_bytes(b"broken")
    steps = [Colors(4, random_state=0, on_error="skip").fit([PHOTOS[0]])]
    with pytest.raises(ValueError, match=r"none of 1 images could be read \(the first: .*b\.png cannot be read"):
        cg.Collection.from_images(datasets.folder(tmp_path), steps)
    with pytest.raises(ValueError, match="got 2 images for 1 items; pass one image for each"):
        cg.Collection.from_images(datasets.folder(tmp_path), steps, images=PHOTOS)
    with pytest.raises(ValueError, match=r"documents has no texts \(0 read\); expected at least one"):
        cg.Collection.from_texts([])


def test_names_that_are_not_unicode_lead_to_their_files(tmp_path):
    name = os.fsdecode(b"caf\xe9.png")
    Image.fromarray(PHOTOS[0]).save(tmp_path / name)
    made = cg.Collection.from_images(datasets.folder(tmp_path), [Colors(4, step=8, random_state=0).fit([PHOTOS[0]])])
    made.save(tmp_path / PATH)
    assert cg.Collection.load(tmp_path / PATH).thumbnail(0).shape == (43, 64, 3)


def test_many_collections_can_be_open_at_once(tmp_path):
    photo_collection().save(tmp_path / PATH)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    kept = [cg.Collection.load(tmp_path / PATH) for _ in range(5)]
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + len(kept)


def test_times_of_zero_are_times():
    assert cg.Collection.from_texts([Document("tea", time=0.0)]).items["time"].tolist() == [0.0]


def test_parts_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match=r"counts of shape \(2, 4\) must have shape \(1, 2\) for 1 items"):
        cg.Collection(np.ones((2, 4)), Vocabulary("words", ("a", "b")), Items({"title": ["x"]}), 1)
    with pytest.raises(ValueError, match="must have one length"):
        Items({"title": ["x"], "label": []})


def rewritten(path, arrays=None, **changes):
    """Save a collection, then change it as an attacker or a later version would."""
    photo_collection().save(path)
    facts, there = container.read(path, collection_file.FORMAT, collection_file.VERSION)
    container.write(path, facts | changes, dict(there) | (arrays or {}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 4}, "has version 4; this release reads version 3; upgrade it"),
        ({"version": 1}, "has version 1; this release reads version 3; make the collection again"),
        ({"format": "model"}, "is a model and must be a collection"),
        ({"shape": [2, 1]}, "is inconsistent"),
        ({"columns": ["nothing"]}, "is inconsistent"),
        ({"steps": [{"class": "os.system", "parameters": {}}]}, "class 'os.system' is not one of"),
        ({"steps": [{"class": "DenseSIFT", "parameters": {"x": 1}}]}, "is inconsistent"),
        ({"arrays": {"item.label.ends": np.array([5, 10**9])}}, "is inconsistent"),
    ],
)
def test_hostile_and_future_files_are_refused(tmp_path, changes, message):
    rewritten(tmp_path / PATH, **changes)
    with pytest.raises(ValueError, match=message):
        cg.Collection.load(tmp_path / PATH)


def test_hostile_counts_are_refused_when_they_are_asked_for(tmp_path):
    indices = photo_collection().counts.indices.copy()
    indices[3] = 10**6
    rewritten(tmp_path / PATH, {"counts.indices": indices})
    loaded = cg.Collection.load(tmp_path / PATH)
    with pytest.raises(ValueError, match=r"the counts in .* are damaged"):
        loaded.counts  # noqa: B018


def test_a_model_is_no_collection_and_the_other_way_round(tmp_path):
    photo_collection().save(tmp_path / PATH)
    with pytest.raises(ValueError, match="is a collection and must be a model"):
        cg.load(tmp_path / PATH)
    cg.MixtureOfUnigrams(2).fit(np.eye(4)).save(tmp_path / "m")
    with pytest.raises(ValueError, match="is a model and must be a collection"):
        cg.Collection.load(tmp_path / "m")


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / PATH
    photo_collection().save(path)
    whole = path.read_bytes()
    for length in [0, 1, 8, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged or no file of countinggrids"):
            cg.Collection.load(path)
