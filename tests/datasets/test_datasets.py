"""Readers: real sets where they are at hand, small folders of their published layout where not."""

import csv
import tarfile

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import datasets
from countinggrids.features import LabelMaps, Words


def touch(root, *names):
    """Make empty files; readers only list them."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")


def test_a_folder_of_class_folders(tmp_path):
    touch(tmp_path, "coast/b.jpg", "coast/a.JPG", "forest/old/c.png", "top.gif", "notes.txt", "coast/.hidden.jpg")
    items = datasets.folder(tmp_path)
    assert items["path"].tolist() == ["coast/a.JPG", "coast/b.jpg", "forest/old/c.png", "top.gif"]
    assert items["label"].tolist() == ["coast", "coast", "forest/old", ""]
    assert items.path(1) == tmp_path / "coast/b.jpg"


def test_15_scenes_with_and_without_splits(tmp_path):
    touch(tmp_path, "train/Coast/a.jpg", "test/Coast/b.jpg", "test/Forest/c.jpg")
    items = datasets.scenes15(tmp_path)
    assert (items["label"].tolist(), items["split"].tolist()) == (
        ["Coast", "Forest", "Coast"],
        ["test", "test", "train"],
    )
    assert datasets.scenes15(tmp_path / "test")["split"].tolist() == ["", ""]


def test_67_indoor_follows_its_lists(tmp_path):
    touch(tmp_path, "Images/bar/one.jpg", "Images/bar/two.jpg", "Images/gym/three.jpg", "Images/gym/unlisted.jpg")
    (tmp_path / "TrainImages.txt").write_text("bar/one.jpg\ngym/three.jpg\ngym/missing.jpg\n")
    (tmp_path / "TestImages.txt").write_text("bar/two.jpg")
    items = datasets.indoor67(tmp_path)
    assert items["path"].tolist() == ["Images/bar/one.jpg", "Images/gym/three.jpg", "Images/bar/two.jpg"]
    assert items["label"].tolist() == ["bar", "gym", "bar"]
    assert items["split"].tolist() == ["train", "train", "test"]
    (tmp_path / "TestImages.txt").unlink()
    with pytest.raises(ValueError, match=r"has no TestImages\.txt; expected the lists and Images/"):
        datasets.indoor67(tmp_path)


def test_frames_are_in_the_order_of_their_numbers(tmp_path):
    touch(tmp_path, "walk10/.old/f1.jpg", "walk2/f1.jpg", "walk10/f10.jpg", "walk10/f9.jpg", "walk2/f02.jpg")
    items = datasets.frames(tmp_path)
    assert items["path"].tolist() == ["walk2/f1.jpg", "walk2/f02.jpg", "walk10/f9.jpg", "walk10/f10.jpg"]
    assert items["time"].tolist() == [0, 1, 0, 1]
    assert items["sequence"].tolist() == items["label"].tolist() == ["walk2", "walk2", "walk10", "walk10"]


def test_frames_take_their_places_from_a_table(tmp_path):
    touch(tmp_path, "day/1.jpg", "day/2.jpg", "day/3.jpg")
    (tmp_path / "labels.csv").write_text("path,label\nday/1.jpg,office\nday/3.jpg,lift\n")
    assert datasets.frames(tmp_path)["label"].tolist() == ["office", "", "lift"]
    (tmp_path / "labels.csv").unlink()
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    assert datasets.frames(tmp_path)["label"].tolist() == ["a", "b", "c"]
    (tmp_path / "labels.txt").write_text("a\n")
    with pytest.raises(ValueError, match=r"labels\.txt has 1 labels for 3 frames; expected one per frame"):
        datasets.frames(tmp_path)
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbfpath,label\nday/1.jpg,office\n")
    assert datasets.frames(tmp_path, tmp_path / "bom.csv")["label"].tolist() == ["office", "", ""]
    (tmp_path / "bom.csv").write_text("path,label\n1.jpg,office\n")
    with pytest.raises(ValueError, match=r"has none of the 3 frames; expected paths such as day/1\.jpg"):
        datasets.frames(tmp_path, tmp_path / "bom.csv")
    (tmp_path / "other.csv").write_text("file,place\n")
    with pytest.raises(ValueError, match="expected path and label; check its first line"):
        datasets.frames(tmp_path, tmp_path / "other.csv")


def test_labelme_pairs_annotations_with_images(tmp_path):
    touch(tmp_path, "Images/street/a.jpg")
    (tmp_path / "Annotations/street").mkdir(parents=True)
    square = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in [(0, 0), (9, 0), (9, 9), (0, 9)])
    xml = f"<annotation><object><name>car</name><polygon>{square}</polygon></object></annotation>"
    for name in ("a", "b"):
        (tmp_path / f"Annotations/street/{name}.xml").write_text(xml)
    items = datasets.labelme(tmp_path)
    assert items["path"].tolist() == ["Images/street/a.jpg", "Annotations/street/b.xml"]
    assert items["label"].tolist() == ["street", "street"]
    sources = [tmp_path / name for name in items["annotation"]]
    made = cg.Collection.from_images(items, [LabelMaps(step=2).fit(sources)], images=sources)
    assert made.vocabulary.names == ("unlabeled", "car")
    assert made.counts.toarray().tolist() == [[0, 25], [0, 25]]


def test_a_video_is_a_sequence(tmp_path):
    cv2 = pytest.importorskip("cv2")
    path = tmp_path / "walk.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (32, 24))
    for i in range(25):
        writer.write(np.full((24, 32, 3), 10 * i, np.uint8))
    writer.release()
    items = datasets.video(path, every=0.5)
    np.testing.assert_allclose(items["time"], [0, 0.5, 1, 1.5, 2])
    from countinggrids.features import Colors
    from countinggrids.features.video import Video

    frames = Video(path, 0.5)
    levels = [int(frame.mean()) for frame in frames]
    np.testing.assert_allclose(levels, [0, 50, 100, 150, 200], atol=4)
    made = cg.Collection.from_images(items, [Colors(3, step=8, random_state=0).fit(frames)], images=frames)
    assert len(made) == 5
    assert abs(int(made.thumbnail(3, 16).mean()) - 150) < 5
    with pytest.raises(ValueError, match="every=0 must be a number of seconds above 0"):
        Video(path, 0)
    path.write_bytes(b"no\0video")
    with pytest.raises(ValueError, match="cannot be opened; expected a video that OpenCV reads"):
        datasets.video(path)
    path.write_text("ffconcat version 1.0\nfile other.avi\n")
    with pytest.raises(ValueError, match="is a text or empty; expected a video, not a playlist"):
        datasets.video(path)


@pytest.mark.parametrize("reader", [datasets.folder, datasets.scenes15, datasets.frames, datasets.labelme])
def test_empty_and_missing_folders_are_named(tmp_path, reader):
    with pytest.raises(ValueError, match="expected"):
        reader(tmp_path)
    with pytest.raises(ValueError, match="is not a folder; expected that of the data set"):
        reader(tmp_path / "none")


def test_15_scenes_is_all_there(data, tmp_path):
    with tarfile.open(data / "15scenes.tar") as tar:
        names = [name for name in tar.getnames() if name.endswith(".jpg")]
    touch(tmp_path, *names)
    items = datasets.scenes15(tmp_path / "15scenes")
    assert len(items) == 4485
    assert (items["split"] == "train").sum() == 1500
    assert len(set(items["label"].tolist())) == 15


def test_the_tower_has_no_test_frame_between_training_frames(data, tmp_path):
    with tarfile.open(data / "ietower.tar") as tar:
        touch(tmp_path, *[name for name in tar.getnames() if name.endswith(".jpg")])
    items = datasets.ietower(tmp_path, data / "ietower.csv")
    assert len(items) == 2877
    clips, splits = items["sequence"], items["split"]
    assert len(set(clips.tolist())) == 124
    for clip in set(clips.tolist()):
        is_test = splits[clips == clip] == "test"
        assert np.abs(np.diff(is_test.astype(int))).sum() <= 2
        assert (items["time"][clips == clip] == np.arange(is_test.size)).all()
    assert 0.27 < (splits == "test").mean() < 0.33
    trained, tested = (set(items["label"][splits == name]) for name in ("train", "test"))
    assert len(trained) == 102
    assert trained - tested == {"basement4 exhibition_entrance", "basement3 lefteatspace_east"}  # one frame each
    assert datasets.ietower(tmp_path, data / "ietower.csv", random_state=1)["split"].tolist() != splits.tolist()


def test_the_tower_reader_names_what_is_missing(tmp_path):
    with open(tmp_path / "a.csv", "w", newline="") as file:
        csv.writer(file).writerows(
            [["image_path", "label", "area"], ["processed_frames/f1/a_frame_1.jpg", "f1", "hall"]]
        )
    with pytest.raises(ValueError, match="has none of the frames"):
        datasets.ietower(tmp_path, tmp_path / "a.csv")
    touch(tmp_path, "ietower/f1/a_frame_1.jpg")
    assert datasets.ietower(tmp_path, tmp_path / "a.csv").row(0)["label"] == "f1 hall"


def test_20_newsgroups_stays_sparse(data):
    news = datasets.newsgroups(data / "text")
    assert news.counts.shape == (18774, 61188)
    assert news.counts.dtype == np.float32
    assert (news.items["split"] == "train").sum() == 11269
    labels = set(news.items["label"].tolist())
    assert len(labels) == 20
    assert "sci.space" in labels
    space = news.split("label")["sci.space"].counts.sum(axis=0) / news.counts.sum(axis=0)
    assert news.vocabulary.names[int(np.nanargmax(np.where(news.counts.sum(axis=0) > 300, space, 0)))] in (
        "orbit",
        "shuttle",
        "lunar",
        "spacecraft",
        "nasa",
        "launch",
        "moon",
    )


def test_ap_stories_become_a_collection(data):
    made = cg.Collection.from_texts(datasets.ap(data / "text" / "ap.txt"), Words(min_df=5, stop_words="english"))
    assert len(made) == 2246
    assert made.items["title"][0] == "AP881218-0003"
    assert made.items["text"][0].startswith("A 16-year-old student")
    assert made.counts.sum(axis=1).min() > 0
