"""Readers of folders and of the data sets of the paper; they list images, which the extractors read."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.data import sparse_files
from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.features import npy_files
from countinggrids.features.delimited import Delimited
from countinggrids.features.descriptors import natural_key
from countinggrids.features.documents import Document
from countinggrids.features.encodings import detect, read_text
from countinggrids.features.image_files import is_image_path
from countinggrids.features.notes import Notes
from countinggrids.features.video import Video
from countinggrids.features.vocabulary import Vocabulary


def folder(path: str | Path) -> Items:
    """List the images of a folder and of its sub-folders; labels are the sub-folders.

    Parameters
    ----------
    path : path-like
        The folder.

    Returns
    -------
    items : Items
        Table with columns path, title and label.
    """
    root, paths = _images(path)
    inner = [each.relative_to(root) for each in paths]
    return _items(root, inner, label=[each.parent.as_posix() if each.parent.name else "" for each in inner])


def scenes15(path: str | Path) -> Items:
    """List the 15-Scenes data set: class folders, alone or inside folders train and test.

    Parameters
    ----------
    path : path-like
        The folder of the data set.

    Returns
    -------
    items : Items
        Table with columns path, title, label and split ("train", "test" or empty).
    """
    root, paths = _images(path)
    inner = [each.relative_to(root) for each in paths]
    splits = [each.parts[0] if each.parts[0] in ("train", "test") else "" for each in inner]
    return _items(root, inner, label=[each.parent.name for each in inner], split=splits)


def indoor67(path: str | Path) -> Items:
    """List the 67-Indoor data set as it is distributed: Images/CLASS/FILE, TrainImages.txt and TestImages.txt.

    Images on neither list are left out, and so are listed images that are missing.

    Parameters
    ----------
    path : path-like
        The folder of the data set.

    Returns
    -------
    items : Items
        Table with columns path, title, label and split.
    """
    root = _folder(path)
    inner, splits = [], []
    for split, name in (("train", "TrainImages.txt"), ("test", "TestImages.txt")):
        if not (root / name).is_file():
            raise ValueError(
                f"{root} has no {name}; expected the lists and Images/ of the 67-Indoor data set; check the path."
            )
        listed = read_text(root / name)[0].split("\n")
        present = [Path("Images") / line.strip() for line in listed if line.strip()]
        present = [each for each in present if (root / each).is_file()]
        inner += present
        splits += [split] * len(present)
    if not inner:
        raise ValueError(f"{root} has none of the listed images; expected them in Images/CLASS/; check the path.")
    return _items(root, inner, label=[each.parent.name for each in inner], split=splits)


def frames(path: str | Path, labels: str | Path | None = None) -> Items:
    """List sequences of frames with the places they show, as of a wearable camera or a robot.

    A sub-folder is a sequence, and numbers in file names are compared as numbers.

    Parameters
    ----------
    path : path-like
        The folder.
    labels : path-like, default=None
        Places: a CSV file with columns path and label, or a text file with a label per frame. None takes labels.csv
        or labels.txt in the folder, or else the sub-folders.

    Returns
    -------
    items : Items
        Table with columns path, title, label, sequence and time (the number of the frame in its sequence).
    """
    root, paths = _images(path)
    inner = sorted(
        (each.relative_to(root) for each in paths), key=lambda each: (natural_key(each.parent), natural_key(each.name))
    )
    sequences = [each.parent.as_posix() for each in inner]
    times = _numbered(sequences)
    places = _labels_of(root, inner, None if labels is None else Path(labels))
    return _items(root, inner, label=places, sequence=sequences, time=times)


def video(path: str | Path, every: float = 1.0) -> Items:
    """List the frames of a video at regular times.

    Parameters
    ----------
    path : path-like
        The video.
    every : float, default=1.0
        Seconds from one frame to the next.

    Returns
    -------
    items : Items
        Table with columns path (the video), title, sequence and time (seconds).
    """
    source = Path(path)
    reading = Video(source, every)
    n_frames = sum(1 for _ in reading)
    if not n_frames:
        raise ValueError(f"{source} has no frames; expected a video that OpenCV reads; convert it to MP4.")
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

    A contiguous run of every clip is held out, at a random place in it, so that test frames are not neighbors in time
    of training frames; a clip of one frame is for training.

    Parameters
    ----------
    path : path-like
        The folder with ietower/FLOOR/FILE in it.
    table : path-like
        The CSV file of the data set.
    held_out : float, default=0.3
        Fraction of each clip for testing.
    random_state : int, default=0
        Seed of where these runs begin.

    Returns
    -------
    items : Items
        Table with columns path, title, label, sequence (the clip), time (the number of the frame) and split.
    """
    root = _folder(path)
    rows = list(_table(table).rows(Notes()))
    inner = [Path("ietower", *Path(row["image_path"]).parts[1:]) for row in rows]
    order = sorted((i for i in range(len(rows)) if (root / inner[i]).is_file()), key=lambda i: natural_key(inner[i]))
    if not order:
        raise ValueError(
            f"{root} has none of the frames of {table}; expected ietower/FLOOR/FILE in it; check the path."
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
    """Read the counts of 20 Newsgroups.

    Parameters
    ----------
    path : path-like
        The folder of 20news_train_bow.npz, 20news_train_labels.npy, the same of test, 20news_vocab.txt and
        20news_labelmap.txt.

    Returns
    -------
    collection : Collection
        Counts, and items with columns title, label and split.
    """
    root = _folder(path)
    names = (root / "20news_vocab.txt").read_text(encoding="utf-8").split("\n")
    groups = dict(
        line.split()[1::-1] for line in read_text(root / "20news_labelmap.txt")[0].splitlines() if line.strip()
    )
    parts, labels, splits = [], [], []
    for split in ("train", "test"):
        parts.append(sparse_files.read(root / f"20news_{split}_bow.npz"))
        numbers = npy_files.mapped(root / f"20news_{split}_labels.npy")
        labels += [groups.get(str(number), str(number)) for number in numbers.tolist()]
        splits += [split] * len(numbers)
    counts = sp.csr_array(sp.vstack(parts, format="csr"), dtype=np.float32)
    items = Items({"title": [f"document {i}" for i in range(len(labels))], "label": labels, "split": splits})
    return Collection(counts, Vocabulary("words", tuple(names[: counts.shape[1]])), items, 1)


def ap(path: str | Path) -> Iterator[Document]:
    """Read the AP news stories: <DOC>, <DOCNO> and <TEXT> in one file.

    Parameters
    ----------
    path : path-like
        The file.

    Yields
    ------
    document : Document
        A story; its title is its number.
    """
    encoding = detect(path)
    with open(path, encoding=encoding.name, errors=encoding.errors) as file:
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
    """List annotations of LabelMe, Annotations/FOLDER/FILE.xml, with their images, Images/FOLDER/FILE.jpg.

    Parameters
    ----------
    path : path-like
        The folder of the data set.

    Returns
    -------
    items : Items
        Table with columns path (the image, or the annotation if there is none), annotation, title and label (the
        folder).
    """
    root = _folder(path)
    inner = sorted(each.relative_to(root) for each in (root / "Annotations").rglob("*.xml"))
    if not inner:
        raise ValueError(f"{root} has no Annotations/**/*.xml; expected the folders of LabelMe; check the path.")
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
        raise ValueError(f"{root} is not a folder; expected that of the data set; check the path.")
    return root.absolute()


def _images(path: str | Path) -> tuple[Path, list[Path]]:
    root = _folder(path)
    paths = sorted(each for each in root.rglob("*") if is_image_path(each) and each.is_file())
    paths = [each for each in paths if not any(part.startswith(".") for part in each.relative_to(root).parts)]
    if not paths:
        raise ValueError(f"{root} has no images; expected files such as .jpg or .png; check the path.")
    return root, paths


def _numbered(sequences: Iterable[str]) -> list[int]:
    """Number the frames of each sequence from 0."""
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
        places = [line.strip() for line in read_text(table)[0].splitlines() if line.strip()]
        if len(places) != len(inner):
            raise ValueError(
                f"{table} has {len(places)} labels for {len(inner)} frames; expected one per frame, in order; check it."
            )
        return places
    rows = _table(table)
    if not {"path", "label"} <= set(rows.names):
        raise ValueError(f"{table} has columns {rows.names}; expected path and label; check its first line.")
    known = {row["path"]: row.get("label", "") for row in rows.rows(Notes())}
    places = [known.get(each.as_posix(), "") for each in inner]
    if not any(places):
        raise ValueError(
            f"{table} has none of the {len(inner)} frames; expected paths such as {inner[0].as_posix()}; check them."
        )
    return places


def _table(path: str | Path) -> Delimited:
    return Delimited(Path(path), detect(path))


def _runs(clips: list[str], held_out: float, random_state: int) -> list[str]:
    """Mark a contiguous run of every clip as "test", the rest as "train"."""
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out={held_out} must be a fraction from 0 to below 1; use for instance held_out=0.3.")
    rng = np.random.default_rng(random_state)
    names = np.array(clips)
    splits = np.full(len(names), "train", dtype="U5")
    for clip in dict.fromkeys(clips):
        places = np.flatnonzero(names == clip)
        n = min(round(held_out * len(places)), len(places) - 1)
        begin = rng.integers(len(places) - n + 1)
        splits[places[begin : begin + n]] = "test"
    return splits.tolist()
