"""Small files that promise much: refused by what their header says, or decoded in little memory."""

import io
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from bombs import chunk, png
from countinggrids.features import BadItemError, LabelMaps, image_files, video

SMALL = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
ROWS = zlib.compress((b"\0" + bytes(8)) * 8)
MEASURE = """
import re, resource, sys
from countinggrids.features import BadItemError, image_files, video
import numpy, PIL.ImageOps, cv2

def peak():
    # ru_maxrss starts at the peak of the parent, which would hide what is allocated here.
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = peak()
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
try:
    {}
except BadItemError as error:
    print(error, file=sys.stderr)
print((peak() - before) // 1024)
"""
pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc to measure memory")


def megabytes(code, *arguments):
    """Run code in a program of its own; return the memory that it took and its errors."""
    command = [sys.executable, "-c", MEASURE.format(code), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    return int(result.stdout), result.stderr


def test_memory_is_measured_whatever_the_parent_has():
    own = np.ones(300 * 2**17)  # 300 MB
    assert megabytes("numpy.ones(200 * 2**17)")[0] == pytest.approx(200, abs=20)
    assert own[-1] == 1


def png_with(*chunks):
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", SMALL) + b"".join(chunks) + chunk(b"IDAT", ROWS) + chunk(b"IEND", b"")


def tiff_with_tiles(side):
    """Make a TIFF of 16x16 pixels whose only tile has far more."""
    data = zlib.compress(bytes(side * side), 9)
    tags = {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: side, 323: side, 324: 8, 325: len(data)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    end = struct.pack("<I", 0)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(tags)) + entries + end


def jpeg_with_scans(n):
    into = io.BytesIO()
    Image.new("L", (64, 64)).save(into, "JPEG", progressive=True)
    content = into.getvalue()
    last = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + last * n + b"\xff\xd9"


@pytest.mark.parametrize("kind", [2, 4, 6], ids=["RGB", "LA", "RGBA"])
def test_a_large_image_takes_little_more_than_its_pixels(tmp_path, kind):
    (tmp_path / "a.png").write_bytes(png(8191, 8191, kind))
    taken, errors = megabytes("image_files.read(sys.argv[1], True, 512)", tmp_path / "a.png")
    assert errors == ""
    assert taken < 640


def test_an_image_that_was_sent_is_refused_before_it_is_decoded(tmp_path):
    (tmp_path / "a.png").write_bytes(png(8191, 8191, 6))
    taken, errors = megabytes("image_files.read_bytes(open(sys.argv[1], 'rb').read())", tmp_path / "a.png")
    assert "has 8191x8191 pixels; expected at most 33554432; downsample it first" in errors
    assert taken < 32


def test_a_large_jpeg_that_was_sent_is_decoded_at_a_reduced_size(tmp_path):
    Image.new("RGB", (8191, 8191), "teal").save(tmp_path / "a.jpg")
    code = "assert image_files.read_bytes(open(sys.argv[1], 'rb').read(), max_side=512).shape == (512, 512, 3)"
    taken, errors = megabytes(code, tmp_path / "a.jpg")
    assert errors == ""
    assert taken < 160


def test_memory_for_large_images_does_not_grow_with_threads(tmp_path):
    (tmp_path / "a.png").write_bytes(png(8191, 8191, 2))
    code = (
        "from concurrent.futures import ThreadPoolExecutor; "
        "list(ThreadPoolExecutor(4).map(lambda path: image_files.read(path, True, 64), 4 * [sys.argv[1]]))"
    )
    assert megabytes(code, tmp_path / "a.png")[0] < 400


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_large_images_are_read_after_a_fork_too(tmp_path):
    (tmp_path / "a.png").write_bytes(png(5000, 5000, 0))
    code = (
        "import os; image_files.read(sys.argv[1]); child = os.fork(); "
        "child or os._exit(image_files.read(sys.argv[1]).shape != (5000, 5000)); "
        "print(os.waitpid(child, 0)[1], file=sys.stderr)"
    )
    assert megabytes(code, tmp_path / "a.png")[1] == "0\n"


@pytest.mark.parametrize(
    "content",
    [
        png_with(chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(200_000_000), 9))),
        png_with(chunk(b"iTXt", b"a\0\1\0\0\0" + zlib.compress(bytes(200_000_000), 9))),
        png_with(chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(200_000_000), 9))),
        png_with(*[chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1_000_000), 9))] * 200),
        png_with(chunk(b"acTL", struct.pack(">II", 2**30, 0))),
        tiff_with_tiles(20_000),
        jpeg_with_scans(500),
    ],
    ids=["zTXt", "iTXt", "iCCP", "many zTXt", "acTL", "tile", "scans"],
)
def test_what_lies_beside_the_pixels_is_bounded_too(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert megabytes("image_files.read(sys.argv[1])", tmp_path / "a")[0] < 128


def test_tiles_and_scans_are_named(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(tiff_with_tiles(20_000))
    with pytest.raises(BadItemError, match=r"a tile of .*a has 20000x20000 pixels; expected at most 16777216"):
        image_files.read(path)
    path.write_bytes(jpeg_with_scans(500))
    with pytest.raises(BadItemError, match=r"a has 50. scans; expected at most 100; save it again"):
        image_files.read(path)


def test_the_limit_is_reported_and_can_be_set(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    Image.new("L", (30, 20)).save(path)
    monkeypatch.setenv("COUNTINGGRIDS_MAX_PIXELS", "599")
    message = "a.png has 30x20 pixels; expected at most 599; downsample it first, or set COUNTINGGRIDS_MAX_PIXELS"
    for read in (image_files.read, image_files.read_raw, lambda path: image_files.read_small(path, 8), LabelMaps().fit):
        with pytest.raises(BadItemError, match=message):
            read([path] if read.__name__ == "fit" else path)
    monkeypatch.setenv("COUNTINGGRIDS_MAX_PIXELS", "600")
    assert image_files.read(path).shape == (20, 30)
    monkeypatch.setenv("COUNTINGGRIDS_MAX_PIXELS", "many")
    with pytest.raises(ValueError, match="COUNTINGGRIDS_MAX_PIXELS='many' must be a number of pixels"):
        image_files.read(path)


def test_a_larger_limit_reaches_pillow_too(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(20_000, 10_000, 0, 1))
    code = "import os; os.environ['COUNTINGGRIDS_MAX_PIXELS'] = '200000000'; "
    code += "print(image_files.read(sys.argv[1], max_side=9).shape, file=sys.stderr)"
    assert megabytes(code, path)[1] == "(4, 9)\n"


def test_frames_of_a_video_have_a_limit(tmp_path):
    cv2 = pytest.importorskip("cv2")
    writer = cv2.VideoWriter(str(tmp_path / "a.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 5, (8000, 8000))
    for _ in range(2):
        writer.write(np.zeros((8000, 8000, 3), np.uint8))
    writer.release()
    for code in ("next(iter(video.Video(sys.argv[1])))", "video.frame_at(sys.argv[1], 0)"):
        taken, errors = megabytes(code, tmp_path / "a.mp4")
        assert "a.mp4 has frames of 8000x8000 pixels; expected at most 33554432; convert it to smaller ones" in errors
        assert taken < 200


@pytest.mark.parametrize("seconds", [-1.0, np.nan, np.inf, 1e300])
def test_a_time_that_is_none_has_no_frame(tmp_path, seconds):
    cv2 = pytest.importorskip("cv2")
    writer = cv2.VideoWriter(str(tmp_path / "a.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 5, (64, 64))
    writer.write(np.zeros((64, 64, 3), np.uint8))
    writer.release()
    with pytest.raises(BadItemError, match="has no frame at"):
        video.frame_at(tmp_path / "a.mp4", seconds)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I", "F", "I;16"])
@pytest.mark.parametrize("is_color", [True, False])
def test_strips_give_the_same_pixels_as_the_whole(tmp_path, monkeypatch, rng, mode, is_color):
    pixels = rng.integers(0, 256, (37, 23, 4), dtype=np.uint8)
    depth = {"I": np.int32, "F": np.float32, "I;16": np.uint16}
    if mode in depth:
        image = Image.fromarray((pixels[..., 0].astype(depth[mode]) * 200).astype(depth[mode]))
    else:
        image = Image.fromarray(pixels).convert(mode)
    image.save(tmp_path / "a.tif")
    whole = image_files.read(tmp_path / "a.tif", is_color)
    monkeypatch.setattr(image_files, "STRIP", 100)
    np.testing.assert_array_equal(image_files.read(tmp_path / "a.tif", is_color), whole)
