"""Readers for folders and for the data sets of the paper: they list items, and leave pixels to the extractors."""

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.collection import Collection
from countinggrids.features.pictures import is_image_path
from countinggrids.features.text import Document
from countinggrids.features.video import Video
from countinggrids.features.vocabulary import Vocabulary
from countinggrids.items import Items


def folder(path: str | Path) -> Items:
    """List the images of a folder and of its sub-folders; the label is the sub-folder, if there is one.

    Columns: path, title, label.
    """
    root, paths = _images(path)
    inner = [each.relative_to(root) for each in paths]
    return _items(root, inner, label=[each.parent.as_posix() if each.parent.name else "" for each in inner])


def scenes15(path: str | Path) -> Items:
    """List the 15-Scenes set: folders train and test of class folders, or class folders alone.

    Columns: path, title, label, split ("train", "test" or empty).
    """
    root, paths = _images(path)
    inner = [each.relative_to(root) for each in paths]
    splits = [each.parts[0] if each.parts[0] in ("train", "test") else "" for each in inner]
    return _items(root, inner, label=[each.parent.name for each in inner], split=splits)


def indoor67(path: str | Path) -> Items:
    """List the 67-Indoor set as its authors distribute it: Images/CLASS/FILE, TrainImages.txt and TestImages.txt.

    Images on neither list are left out, and listed images that are not there too. Columns: path, title, label, split.
    """
    root = _folder(path)
    inner, splits = [], []
    for split, name in (("train", "TrainImages.txt"), ("test", "TestImages.txt")):
        if not (root / name).is_file():
            raise ValueError(
                f"{root} has no {name}; wanted the lists and Images/ of the 67-Indoor set; check the folder"
            )
        listed = (root / name).read_text(encoding="utf-8", errors="replace").split("\n")
        present = [Path("Images") / line.strip() for line in listed if line.strip()]
        present = [each for each in present if (root / each).is_file()]
        inner += present
        splits += [split] * len(present)
    if not inner:
        raise ValueError(f"{root} holds none of the listed images; wanted them in Images/CLASS/; check the folder")
    return _items(root, inner, label=[each.parent.name for each in inner], split=splits)


def frames(path: str | Path, labels: str | Path | None = None) -> Items:
    """List ordered frames with the places they show, as of a wearable camera or a robot.

    A sub-folder is a sequence, and numbers in file names are compared as numbers. The place is what a table of labels
    says (columns path and label, or a file of one label per frame beside the frames, labels.csv or labels.txt),
    or else the sub-folder.

    Columns: path, title, label, sequence, time (the frame's number in its sequence).
    """
    root, paths = _images(path)
    inner = sorted(
        (each.relative_to(root) for each in paths), key=lambda each: (_natural(each.parent), _natural(each.name))
    )
    sequences = [each.parent.as_posix() for each in inner]
    times = _numbered(sequences)
    places = _labels_of(root, inner, None if labels is None else Path(labels))
    return _items(root, inner, label=places, sequence=sequences, time=times)


def video(path: str | Path, every: float = 1.0) -> Items:
    """List the frames of a video, one every so many seconds.

    Columns: path (the video), title, sequence, time (seconds).
    """
    source = Path(path)
    reading = Video(source, every)
    n_frames = sum(1 for _ in reading)
    if not n_frames:
        raise ValueError(f"{source} has no frames; wanted a video that OpenCV reads; convert it to MP4")
    return Items(
        {
            "path": [source.name] * n_frames,
            "title": [f"{source.stem} {time:g} s" for time in reading.times],
            "sequence": [source.stem] * n_frames,
            "time": reading.times,
        },
        source.parent.absolute(),
    )


def ietower(path: str | Path, table: str | Path, held_out: float = 0.3, random_state: int = 0) -> Items:
    """List the walks through a tower: the place is the floor and the area of the clip.

    A contiguous run of every clip is held out, at a random place in it, so that test frames are not strewn among
    their neighbours in time; a clip of one frame is for training.

    Parameters
    ----------
    path : the folder that holds ietower/FLOOR/FILE
    table : the set's CSV file
    held_out : which share of each clip is for testing
    random_state : seed of where those runs begin

    Returns
    -------
    Items with columns path, title, label, sequence (the clip), time (the frame's number), split
    """
    root = _folder(path)
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    inner = [Path("ietower", *Path(row["image_path"]).parts[1:]) for row in rows]
    order = sorted((i for i in range(len(rows)) if (root / inner[i]).is_file()), key=lambda i: _natural(inner[i]))
    if not order:
        raise ValueError(
            f"{root} holds none of the frames of {table}; wanted ietower/FLOOR/FILE in it; check the folder"
        )
    clips = [f"{inner[i].parent.name}/{inner[i].name.split('_frame_')[0]}" for i in order]
    return _items(
        root,
        [inner[i] for i in order],
        label=[f"{rows[i]['label']} {rows[i]['area']}" for i in order],
        sequence=clips,
        time=_numbered(clips),
        split=_runs(clips, held_out, random_state),
    )


def newsgroups(path: str | Path) -> Collection:
    """Read 20 Newsgroups as counts: 20news_{train,test}_bow.npz, ..._labels.npy, 20news_vocab.txt, 20news_labelmap.txt.

    Columns: title, label, split.
    """
    root = _folder(path)
    names = (root / "20news_vocab.txt").read_text(encoding="utf-8").split("\n")
    groups = dict(
        line.split()[1::-1] for line in (root / "20news_labelmap.txt").read_text().splitlines() if line.strip()
    )
    parts, labels, splits = [], [], []
    for split in ("train", "test"):
        parts.append(sp.load_npz(root / f"20news_{split}_bow.npz"))
        numbers = np.load(root / f"20news_{split}_labels.npy", allow_pickle=False)
        labels += [groups.get(str(number), str(number)) for number in numbers.tolist()]
        splits += [split] * len(numbers)
    counts = sp.csr_array(sp.vstack(parts, format="csr"), dtype=np.float32)
    items = Items({"title": [f"document {i}" for i in range(len(labels))], "label": labels, "split": splits})
    return Collection(counts, Vocabulary("words", tuple(names[: counts.shape[1]])), items, 1)


def ap(path: str | Path) -> Iterator[Document]:
    """Read the AP stories, one after another: <DOC>, <DOCNO> and <TEXT> in one file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        number, is_text = "", False
        lines: list[str] = []
        for line in file:
            mark = line.strip()
            if mark.startswith("<DOCNO>"):
                number = mark.removeprefix("<DOCNO>").removesuffix("</DOCNO>").strip()
            elif mark == "<TEXT>":
                lines, is_text = [], True
            elif mark == "</TEXT>":
                is_text = False
                yield Document(" ".join(lines), number)
            elif is_text:
                lines.append(mark)


def labelme(path: str | Path) -> Items:
    """List LabelMe annotations, Annotations/FOLDER/FILE.xml, with their images, Images/FOLDER/FILE.jpg, if present.

    Columns: path (the image, or the annotation where there is none), annotation, title, label (the folder).
    """
    root = _folder(path)
    inner = sorted(each.relative_to(root) for each in (root / "Annotations").rglob("*.xml"))
    if not inner:
        raise ValueError(f"{root} has no Annotations/**/*.xml; wanted LabelMe's folders; check the folder")
    images = [Path("Images", *each.parts[1:]).with_suffix(".jpg") for each in inner]
    shown = [image if (root / image).is_file() else each for image, each in zip(images, inner, strict=True)]
    return _items(
        root,
        shown,
        label=["/".join(each.parts[1:-1]) for each in inner],
        annotation=[each.as_posix() for each in inner],
    )


def _items(root: Path, inner: list[Path], **columns: Any) -> Items:
    return Items({"path": [each.as_posix() for each in inner], "title": [each.stem for each in inner], **columns}, root)


def _folder(path: str | Path) -> Path:
    root = Path(path)
    if not root.is_dir():
        raise ValueError(f"{root} is no folder; wanted one that holds the data set; check the path")
    return root.absolute()


def _images(path: str | Path) -> tuple[Path, list[Path]]:
    root = _folder(path)
    paths = sorted(each for each in root.rglob("*") if is_image_path(each) and each.is_file())
    paths = [each for each in paths if not any(part.startswith(".") for part in each.relative_to(root).parts)]
    if not paths:
        raise ValueError(f"{root} holds no images; wanted files such as .jpg or .png; check the path")
    return root, paths


def _natural(name: object) -> list[tuple[bool, int, str]]:
    """Give a key by which frame_2 comes before frame_10."""
    parts = re.split(r"([0-9]+)", str(name))  # every second part is a number
    return [(i % 2 == 1, int(part) if i % 2 else 0, part) for i, part in enumerate(parts)]


def _numbered(sequences: Iterable[str]) -> list[int]:
    """Count up within each sequence."""
    seen: dict[str, int] = {}
    numbers = []
    for sequence in sequences:
        numbers.append(seen.get(sequence, 0))
        seen[sequence] = numbers[-1] + 1
    return numbers


def _labels_of(root: Path, inner: list[Path], table: Path | None) -> list[str]:
    table = table or next((root / name for name in ("labels.csv", "labels.txt") if (root / name).is_file()), None)
    if table is None:
        return [each.parent.as_posix() if each.parent.name else "" for each in inner]
    if table.suffix != ".csv":
        places = [line.strip() for line in table.read_text(encoding="utf-8").splitlines() if line.strip()]
        if len(places) != len(inner):
            raise ValueError(f"{table} has {len(places)} labels for {len(inner)} frames; wanted one a frame, in order")
        return places
    with open(table, encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        if not {"path", "label"} <= set(rows.fieldnames or ()):
            raise ValueError(f"{table} has columns {rows.fieldnames}; wanted path and label; check its first line")
        known = {row["path"]: row["label"] for row in rows}
    places = [known.get(each.as_posix(), "") for each in inner]
    if not any(places):
        raise ValueError(
            f"{table} labels none of the {len(inner)} frames; wanted paths such as {inner[0].as_posix()}; check them"
        )
    return places


def _runs(clips: list[str], share: float, random_state: int) -> list[str]:
    """Mark a contiguous run of every clip as "test", the rest as "train"."""
    if not 0 <= share < 1:
        raise ValueError(f"held_out is {share}; wanted a share from 0 to below 1; give for instance 0.3")
    rng = np.random.default_rng(random_state)
    names = np.array(clips)
    splits = np.full(len(names), "train", dtype="U5")
    for clip in dict.fromkeys(clips):
        places = np.flatnonzero(names == clip)
        n = min(round(share * len(places)), len(places) - 1)
        begin = rng.integers(len(places) - n + 1)
        splits[places[begin : begin + n]] = "test"
    return splits.tolist()
