"""Detection of the encoding of text files, verified by decoding the whole file."""

import codecs
import os
from pathlib import Path
from typing import Any, NamedTuple

from countinggrids.features.stream import BadItemError

BLOCK = 1 << 20
SAMPLE = 1 << 17
"""Bytes that an encoding is detected from, around those that are not ASCII."""
PIECE = 1 << 10
MOST_INVALID = 0.1
"""Fraction of invalid bytes, among those that are not ASCII, up to which a file counts as damaged UTF-8."""
MOST_NAMED = 5

MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Where several fit a text equally well, the one that comes first here is taken. Few texts in other encodings are valid
# in one of several bytes per character, so these come first; the others by how many files are in them.
CANDIDATES = (
    *("cp932", "gb18030", "euc_jp", "cp949", "big5", "cp1252", "cp1251", "cp1250", "koi8_r", "cp1253", "cp1254"),
    *("cp1255", "cp1256", "cp1257", "cp874", "iso8859_2", "mac_roman", "cp850"),
)


class Encoding(NamedTuple):
    """The encoding of a file.

    Attributes
    ----------
    name : str
        Name of the codec.
    certainty : str
        "certain"; "likely" where one encoding fits best, or nearly; "guess" where others fit as well.
    reason : str
        How it was found: "given", "byte order mark", "valid", "zero bytes", "detected" or "escape sequences".
    alternatives : tuple of str
        Other encodings that fit as well.
    n_invalid : int
        Invalid bytes, which are replaced by U+FFFD.
    """

    name: str
    certainty: str = "certain"
    reason: str = "valid"
    alternatives: tuple[str, ...] = ()
    n_invalid: int = 0

    @property
    def errors(self) -> str:
        """Error handler of the codec."""
        return "replace" if self.n_invalid else "strict"

    def facts(self) -> dict[str, Any]:
        """Return the encoding as plain data."""
        known = {"name": self.name, "certainty": self.certainty, "reason": self.reason}
        more = {"alternatives": list(self.alternatives), "invalid_bytes": self.n_invalid}
        return known | {name: value for name, value in more.items() if value}


class BinaryFileError(BadItemError):
    """A file with zero bytes, which is not a text."""


def detect(path: str | os.PathLike[str], given: str | None = None, may_hold_zeros: bool = False) -> Encoding:
    """Return the encoding of a file; the whole file decodes with it.

    Parameters
    ----------
    path : path-like
        The file. It is read block by block.
    given : str, default=None
        Encoding to use. None detects it: a byte order mark, UTF-8, UTF-16 by its zero bytes, or what
        charset-normalizer finds in a sample.
    may_hold_zeros : bool, default=False
        Whether a file with zero bytes that is not UTF-16 is accepted. Otherwise it counts as binary.

    Returns
    -------
    encoding : Encoding
        The encoding, and how it was found.

    Raises
    ------
    ValueError
        If the file does not decode with the given encoding, or with any that was detected.
    """
    path = Path(path)
    if given is not None:
        return _given(path, given)
    with open(path, "rb") as file:
        head = file.read(SAMPLE)
    marked = next((name for mark, name in MARKS if head.startswith(mark)), None)
    if marked is not None:
        return _marked(path, marked)
    invalid = _first_error(path, "utf-8")
    wide = _wide(head, is_utf8=invalid is None)
    if wide is not None and _first_error(path, wide) is None:
        return Encoding(wide, "likely", "zero bytes")
    if b"\0" in head[:4096] and not may_hold_zeros:
        raise BinaryFileError(f"{path} has zero bytes; expected a text; remove it, convert it or give its encoding.")
    if invalid is None:
        has_escapes = b"\x1b$" in head and _first_error(path, "iso2022_jp") is None
        return Encoding("iso2022_jp", "likely", "escape sequences") if has_escapes else Encoding("utf-8")
    return _damaged(path) or _detected(path)


def read_text(path: str | os.PathLike[str], given: str | None = None) -> tuple[str, Encoding]:
    """Return the whole text of a file, and the encoding that it is in, given or detected."""
    found = detect(path, given)
    return Path(path).read_text(found.name, found.errors), found


def _given(path: Path, name: str) -> Encoding:
    try:
        is_text = codecs.lookup(name)._is_text_encoding
    except LookupError:
        is_text = False
    if not is_text:
        raise ValueError(f"encoding={name!r} must be one that Python supports, such as utf-8 or cp1252.")
    # This codec reads UTF-8 with and without a byte order mark.
    name = "utf-8-sig" if codecs.lookup(name).name == "utf-8" else name
    error = _first_error(path, name)
    if error is not None:
        raise ValueError(
            f"{path} cannot be read with encoding={name!r}: {error}; use another encoding, or None to detect it."
        )
    return Encoding(name, "certain", "given")


def _marked(path: Path, name: str) -> Encoding:
    error = _first_error(path, name)
    if error is None:
        return Encoding(name, "certain", "byte order mark")
    if name != "utf-8-sig":
        raise BadItemError(f"{path} begins as {name} and cannot be read as such: {error}; give its encoding.")
    return Encoding(name, "likely", "byte order mark", n_invalid=_n_invalid(path)[0])


def _first_error(path: Path, name: str) -> str | None:
    """Return where and why a file does not decode, or None."""
    decoder = codecs.getincrementaldecoder(name)()
    position = 0
    with open(path, "rb") as file:
        while True:
            block = file.read(BLOCK)
            # The decoder may hold the beginning of a sequence that was split between blocks.
            held = len(decoder.getstate()[0])
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                at = position - held + error.start
                return f"byte 0x{error.object[error.start]:02x} at position {at} ({error.reason})"
            except UnicodeError as error:
                return f"{error} after position {position}"
            if not block:
                return None
            position += len(block)


def _wide(head: bytes, is_utf8: bool) -> str | None:
    """Recognize UTF-16 without a mark: its zero bytes lie on one side of the pairs."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    most, least = max(even, odd), min(even, odd)
    is_frequent = most > 0.02 * len(head)
    if most < 2 or least > 0.1 * most or (is_utf8 and not is_frequent):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _damaged(path: Path) -> Encoding | None:
    """Recognize UTF-8 with few invalid bytes."""
    n_invalid, n_other = _n_invalid(path)
    is_damaged = n_invalid <= MOST_INVALID * n_other
    return Encoding("utf-8", "likely", "valid", n_invalid=n_invalid) if is_damaged else None


def _n_invalid(path: Path) -> tuple[int, int]:
    """Count characters of UTF-8 that are invalid, and those that are not ASCII."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    n_invalid = n_other = 0
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            text = decoder.decode(block)
            n_invalid += text.count("\ufffd")
            n_other += len(text) - len(text.encode("ascii", "ignore"))
    return n_invalid + decoder.decode(b"", final=True).count("\ufffd"), n_other


def _detected(path: Path) -> Encoding:
    from charset_normalizer import from_bytes

    sample = _sample(path)
    found = from_bytes(sample, cp_isolation=list(CANDIDATES), steps=20, preemptive_behaviour=False)
    scores = {
        name: (match.chaos, -match.coherence)
        for match in found
        for name in match.could_be_from_charset
        if name in CANDIDATES
    }
    ranked = sorted(scores, key=lambda name: (scores[name], CANDIDATES.index(name)))
    close = [name for name in CANDIDATES if name in scores and _is_close(scores[name], scores[ranked[0]])]
    errors = {}
    for name in dict.fromkeys([*close, *ranked]):
        errors[name] = _first_error(path, name)
        if errors[name] is None:
            text = sample.decode(name, "replace")
            others = tuple(other for other in close if sample.decode(other, "replace") != text)[:MOST_NAMED]
            return Encoding(name, "guess" if others else "likely", "detected", others)
    tried = "; ".join(f"{name}: {error}" for name, error in list(errors.items())[:3])
    raise BadItemError(f"{path} has an encoding that cannot be detected ({tried or 'not UTF-8'}); give its encoding.")


def _is_close(score: tuple[float, float], best: tuple[float, float]) -> bool:
    """Return whether two scores of charset-normalizer, chaos and negative coherence, differ by no more than noise."""
    return score[0] <= best[0] + 0.01 and score[1] <= best[1] + 0.1


def _sample(path: Path) -> bytes:
    """Read a small file, or pieces of a larger one that are not ASCII, cut at the ends of lines."""
    if path.stat().st_size <= SAMPLE:
        return path.read_bytes()
    sample = bytearray()
    with open(path, "rb") as file:
        while len(sample) < SAMPLE and (piece := file.read(PIECE)):
            if not piece.isascii():
                sample += piece + file.readline(SAMPLE)
    return bytes(sample)
