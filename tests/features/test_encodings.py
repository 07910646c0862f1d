"""The encoding of text files: detected, said, or refused; nothing is mangled without a word."""

import pytest

from countinggrids.features.encodings import BinaryFileError, detect, read_text
from countinggrids.features.stream import BadItemError

PROSE = {
    "café façade, naïve résumé\n": "latin-1",
    "He said “hello” to the café — twice\n": "cp1252",
    "東京都は日本の首都です。今日は天気がいいですね。\n": "shift_jis",
    "東京都は日本の首都です。今日も天気がいい\n": "euc_jp",
    "東京都は日本の首都です\n": "iso2022_jp",
    "今天天气很好,我们去公园散步吧。\n": "gbk",
    "今天天氣很好,我們去公園散步吧。\n": "big5",
    "안녕하세요. 오늘 날씨가 좋습니다.\n": "euc_kr",
    "Привет, мир! Сегодня хорошая погода.\n": "cp1251",
    "Привет, мир, сегодня хорошая погода\n": "koi8_r",
    "Καλημέρα κόσμε, τι κάνεις σήμερα\n": "cp1253",
    "مرحبا بالعالم كيف حالك اليوم\n": "cp1256",
    "สวัสดีชาวโลก วันนี้อากาศดี\n": "cp874",
    "café, with a mark\n": "utf-8-sig",
    "café, little\n": "utf-16",
    "café in little pairs\n": "utf-16-le",
    "café in big pairs\n": "utf-16-be",
    "今天天气很好,我们去公园散步吧\n": "utf-16-le",
    "café in fours\n": "utf-32",
    "café ☕\n": "utf-8",
    "": "utf-8",
}


@pytest.mark.parametrize(("text", "encoding"), PROSE.items(), ids=lambda value: value[:12])
def test_texts_are_read_in_the_encoding_they_were_written_in(tmp_path, text, encoding):
    path = tmp_path / "a.txt"
    path.write_bytes((text * 3).encode(encoding))
    assert read_text(path)[0] == text * 3


def test_marks_and_valid_utf8_are_certain_and_short_texts_are_a_guess(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"caf\xc3\xa9")
    assert detect(path).facts() == {"name": "utf-8", "certainty": "certain", "reason": "valid"}
    path.write_bytes("café".encode("utf-16"))
    assert detect(path).facts() == {"name": "utf-16", "certainty": "certain", "reason": "byte order mark"}
    path.write_bytes(b"caf\xe9 fa\xe7ade\n")
    found = detect(path)
    assert (found.name, found.certainty, found.reason) == ("cp1252", "guess", "detected")
    assert "cp1251" in found.alternatives


def test_a_byte_far_into_the_file_still_decides(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"plain words\n" * 300_000 + "Die Straße über den Fluss ist schön und groß\n".encode("latin-1"))
    found = detect(path)
    assert (found.name, found.reason) == ("cp1252", "detected")
    path.write_bytes(b"plain words\n" * 300_000 + "größe und länge\n".encode())
    assert detect(path).name == "utf-8"


def test_a_character_across_two_blocks_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr("countinggrids.features.encodings.BLOCK", 3)
    path = tmp_path / "a.txt"
    path.write_bytes("ab☕☕é".encode())
    assert detect(path).name == "utf-8"
    path.write_bytes("ab☕☕é".encode() + b"\xff")
    with pytest.raises(ValueError, match="byte 0xff at position 10 "):
        detect(path, "utf-8")


def test_few_invalid_bytes_in_utf8_are_counted_and_replaced(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("größe café ☕ ".encode() * 50 + b"caf\xe9")
    text, found = read_text(path)
    assert (found.name, found.n_invalid, text.count("\ufffd")) == ("utf-8", 1, 1)
    assert found.facts()["invalid_bytes"] == 1


def test_a_wrong_encoding_is_refused_at_its_first_byte(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\xe9 caf\xe9")
    with pytest.raises(
        ValueError, match=r"a\.txt cannot be read with encoding='ascii': byte 0xe9 at position 3 .*use a"
    ):
        detect(path, "ascii")
    assert detect(path, "latin-1") == ("latin-1", "certain", "given", (), 0)
    for name in ("klingon", "rot13", "hex"):
        with pytest.raises(ValueError, match=f"encoding='{name}' must be one that Python supports"):
            detect(path, name)


def test_utf8_that_is_given_takes_a_mark_off(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("café".encode("utf-8-sig"))
    assert read_text(path, "UTF-8")[0] == "café"


def test_what_no_encoding_fits_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("café".encode("utf-16") + b"\x00")
    with pytest.raises(
        BadItemError, match=r"a\.txt begins as utf-16 and cannot be read as such: .*; give its encoding"
    ):
        detect(path)
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(BinaryFileError, match=r"a\.txt has zero bytes; expected a text"):
        detect(path)
    path.write_bytes(bytes(range(1, 256)) * 40)
    with pytest.raises(BadItemError, match=r"a\.txt has an encoding that cannot be detected .*; give its encoding"):
        detect(path)
