"""Images of every kind: read as they look, or refused with a word on why."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from countinggrids.features import BadItemError, image_files

RAMP = np.linspace(0, 255, 48).astype(np.uint8)[None].repeat(32, axis=0)
COLOR = np.stack([RAMP, RAMP[:, ::-1], np.full_like(RAMP, 90)], axis=2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "image.png"


def test_gray_and_color(path):
    Image.fromarray(COLOR).save(path)
    np.testing.assert_array_equal(image_files.read(path, is_color=True), COLOR)
    gray = image_files.read(path)
    assert gray.shape == (32, 48)
    np.testing.assert_allclose(gray, COLOR @ [0.299, 0.587, 0.114], atol=1)


def test_paths_and_arrays_give_the_same(path):
    Image.fromarray(COLOR).save(path)
    np.testing.assert_array_equal(image_files.read(COLOR), image_files.read(str(path)))
    np.testing.assert_array_equal(image_files.read(COLOR / 255), image_files.read(COLOR))
    np.testing.assert_array_equal(image_files.read(COLOR.astype(np.uint16) << 8), image_files.read(COLOR))


def test_mirrored_images_come_left_for_right(path):
    Image.fromarray(COLOR).save(path)
    gray, same = image_files.mirrored([path, image_files.read(path)])
    np.testing.assert_array_equal(gray, image_files.read(path)[:, ::-1])
    np.testing.assert_array_equal(same, gray)
    [color] = image_files.mirrored([path], is_color=True)
    np.testing.assert_array_equal(color, COLOR[:, ::-1])


def test_cmyk(tmp_path):
    Image.fromarray(COLOR).convert("CMYK").save(tmp_path / "a.jpg", quality=95)
    np.testing.assert_allclose(image_files.read(tmp_path / "a.jpg", is_color=True).mean(), COLOR.mean(), atol=4)


def test_sixteen_bits_are_scaled_and_not_cut_off(path):
    Image.fromarray(RAMP.astype(np.uint16) * 257).save(path)
    np.testing.assert_array_equal(image_files.read(path), RAMP)


def test_float_images_are_spread(tmp_path):
    Image.fromarray(RAMP.astype(np.float32) * 3 - 7).save(tmp_path / "a.tif")
    np.testing.assert_allclose(image_files.read(tmp_path / "a.tif"), RAMP, atol=1)


def test_rotation_marks_are_obeyed(tmp_path):
    image = Image.fromarray(RAMP)
    mark = image.getexif()
    mark[0x0112] = 6  # to be turned clockwise
    image.save(tmp_path / "a.jpg", exif=mark, quality=100)
    np.testing.assert_allclose(image_files.read(tmp_path / "a.jpg"), np.rot90(RAMP, -1), atol=4)


def test_the_first_frame_of_an_animation_is_taken(tmp_path):
    frames = [Image.fromarray(RAMP), Image.fromarray(255 - RAMP)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    np.testing.assert_allclose(image_files.read(tmp_path / "a.gif"), RAMP, atol=4)


def test_what_is_transparent_lies_on_white(path):
    pixels = np.dstack([COLOR, np.zeros_like(RAMP)])
    Image.fromarray(pixels).save(path)
    assert (image_files.read(path) == 255).all()
    assert (image_files.read(pixels) == 255).all()


def test_lab_images_are_read(tmp_path):
    from PIL import ImageCms

    lab = ImageCms.profileToProfile(
        Image.fromarray(COLOR), ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    lab.save(tmp_path / "a.tif")
    assert image_files.read(tmp_path / "a.tif").shape == (32, 48)
    assert image_files.read(tmp_path / "a.tif", is_color=True).shape == (32, 48, 3)


def test_only_decoders_of_pictures_see_a_file(path):
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    with pytest.raises(BadItemError, match="cannot identify image file"):
        image_files.read(path)


def test_reading_on_threads_leaves_warnings_alone(tmp_path):
    import warnings

    from countinggrids.features import DenseSIFT

    for i in range(12):
        Image.fromarray(COLOR).save(tmp_path / f"{i}.png")
    before = list(warnings.filters)
    list(DenseSIFT(n_jobs=4).transform(sorted(tmp_path.iterdir())))
    assert warnings.filters == before


def test_large_images_are_shrunk(path):
    Image.fromarray(COLOR).save(path)
    assert image_files.read(path, max_side=24).shape == (16, 24)
    assert image_files.read(path, max_side=480).shape == (32, 48)
    assert image_files.read(np.zeros((1, 500), np.uint8), max_side=24).shape == (1, 24)


def png_of(width, height):
    """Make a PNG that declares many pixels and has few."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b"plain words", "cannot be read"),
        (png_of(30_000, 30_000), "is too large .*; expected at most 67108864 pixels; downsample it first, or set"),
        (png_of(9_000, 9_000), "has 9000x9000 pixels; expected at most 67108864; downsample it first"),
        (png_of(0, 5), "cannot be read"),
    ],
)
def test_bad_files_are_refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(BadItemError, match=message) as caught:
        image_files.read(path)
    assert str(path) in str(caught.value)


def test_truncated_files_are_refused(tmp_path):
    for suffix in ("jpg", "png", "gif", "webp", "tif", "bmp"):
        path = tmp_path / f"a.{suffix}"
        Image.fromarray(COLOR).save(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(BadItemError, match="cannot be read"):
            image_files.read(path)


def test_a_missing_file_is_named(path):
    with pytest.raises(BadItemError, match=r"image\.png does not exist or is not a file"):
        image_files.read(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 0)), "an image of shape"),
        (np.zeros(4), "an image of shape"),
        (np.zeros((4, 4, 2)), "an image of shape"),
        (np.full((4, 4), 2.5), "of float64 from 2.5 to 2.5 must be integers of 8 or 16 bits or floats from 0 to 1"),
        (np.full((4, 4), -1), "of int64 from -1"),
        (np.full((4, 4), np.nan), "of float64 from nan"),
    ],
)
def test_bad_arrays_are_refused(array, message):
    with pytest.raises(BadItemError, match=message):
        image_files.read(array)
