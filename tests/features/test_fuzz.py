"""Mutated files: every one is read or refused with a word on why; nothing crashes, nothing hangs."""

import time

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from countinggrids.features import LabelMaps, image_files
from countinggrids.features.text import read_documents
from mutations import mutated

PHOTO = load_sample_image("flower.jpg")[100:140, 200:260]
ROUNDS = 200
LONGEST = 5.0  # seconds one file may take; far above what any takes, far below a hang


def survive(read, path, content, seed):
    """Read damaged copies of a file; give how many were read and how many refused."""
    rng = np.random.default_rng(seed)
    read_well = refused = 0
    messages = []
    for _ in range(ROUNDS):
        path.write_bytes(mutated(content, rng))
        began = time.monotonic()
        try:
            read(path)
            read_well += 1
        except ValueError as error:
            refused += 1
            messages.append(str(error))
        assert time.monotonic() - began < LONGEST
    assert all(str(path) in message for message in messages)
    return read_well, refused


@pytest.mark.parametrize("suffix", ["jpg", "png", "gif", "webp", "bmp", "tif", "ppm"])
def test_images(tmp_path, suffix):
    path = tmp_path / f"image.{suffix}"
    Image.fromarray(PHOTO).save(path)
    _, refused = survive(image_files.read, path, path.read_bytes(), 0)
    assert refused > 0


def test_sixteen_bit_and_marked_images(tmp_path):
    for name, image, more in [
        ("deep.png", Image.fromarray(PHOTO[..., 0].astype(np.uint16) * 257), {}),
        (
            "turned.jpg",
            Image.fromarray(PHOTO),
            {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"},
        ),
        ("moving.gif", Image.fromarray(PHOTO), {"save_all": True, "append_images": [Image.fromarray(255 - PHOTO)]}),
    ]:
        image.save(tmp_path / name, **more)
        survive(image_files.read, tmp_path / name, (tmp_path / name).read_bytes(), 1)


def test_annotations(tmp_path):
    points = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in [(0, 0), (30, 2), (20, 30)])
    xml = "<annotation><imagesize><nrows>40</nrows><ncols>50</ncols></imagesize>{}</annotation>".format(
        "".join(f"<object><name>thing {i}</name><polygon>{points}</polygon></object>" for i in range(4))
    )
    path = tmp_path / "a.xml"
    read_well, refused = survive(lambda each: list(LabelMaps().fit([each]).transform([each])), path, xml.encode(), 2)
    assert read_well > 0
    assert refused > 0


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "txt", "parquet"])
def test_texts(tmp_path, suffix):
    path = tmp_path / f"texts.{suffix}"
    rows = [{"text": f"word {i} \u2603 said 'x'", "title": f"t{i}"} for i in range(30)]
    if suffix == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif suffix == "jsonl":
        import json

        path.write_text("\n".join(json.dumps(row) for row in rows))
    else:
        mark = "\t" if suffix == "tsv" else ","
        path.write_text("\n".join(["text" + mark + "title"] + [f'"{r["text"]}"{mark}{r["title"]}' for r in rows]))
    read_well, _ = survive(lambda each: list(read_documents(each, on_error="skip")), path, path.read_bytes(), 3)
    assert read_well > 0
