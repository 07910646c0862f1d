"""Tokenizers by name, with fixed patterns that take linear time: a file can name one, not define a pattern."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby, pairwise
from typing import Any, NamedTuple

Tokenizer = Callable[[str], list[str]]

DENSE_BLOCKS = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),  # Thai to Myanmar
    *((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF)),  # Kana
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F)),  # Han
)
BEYOND = "\U00020000-\U0003ffff"
"""Rare Han characters."""
JOINERS = "\u200c\u200d"
"""Invisible characters inside words of Persian and of the scripts of India."""
ENDINGS = r"(?:['\u2019](?i:s|t|d|m|ll|re|ve)(?!{word}))?"


class Alphabet(NamedTuple):
    """Characters by their role in words, each as the inside of a character class of a regular expression.

    Attributes
    ----------
    words : str
        Letters, digits and marks of scripts with spaces between words.
    dense : str
        Letters and marks of scripts without spaces: Chinese, Japanese, Thai, Lao, Khmer, Myanmar.
    marks : str
        Marks that belong to the letter before them.
    """

    words: str
    dense: str
    marks: str


@cache
def alphabet() -> Alphabet:
    """Return the characters of words, by their Unicode categories."""
    dense = {code for first, last in DENSE_BLOCKS for code in range(first, last + 1)}
    kinds = {code: unicodedata.category(chr(code))[0] for code in range(0x20000)}
    marks = [code for code, kind in kinds.items() if kind == "M" and not _is_decoration(code)]
    letters = [code for code, kind in kinds.items() if kind == "L" or chr(code).isalnum()]
    spaced = [code for code in sorted({*marks, *letters}) if code not in dense or kinds[code] not in "LM"]
    joined = [code for code in sorted({*marks, *letters}) if code in dense and kinds[code] in "LM"]
    return Alphabet(_ranges(spaced), _ranges(joined) + BEYOND, _ranges(marks))


def _is_decoration(code: int) -> bool:
    """Return whether a mark selects emoji or encloses characters."""
    return 0xFE00 <= code <= 0xFE0F or 0x20D0 <= code <= 0x20FF


def _ranges(codes: Iterable[int]) -> str:
    groups = groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0])
    runs = [[code for _, code in group] for _, group in groups]
    return "".join(f"\\U{run[0]:08x}-\\U{run[-1]:08x}" for run in runs)


@cache
def _runs() -> re.Pattern[str]:
    """Match runs of a script without spaces, as the first group, and words of other scripts, as the second."""
    known = alphabet()
    word = f"[{known.words}]"
    inner = f"[{known.words}{JOINERS}]"
    return re.compile(f"([{known.dense}]+)|({word}{inner}*{ENDINGS.format(word=word)})")


@cache
def _ascii_runs() -> re.Pattern[str]:
    """Match words of ASCII, faster."""
    return re.compile("[A-Za-z0-9]+" + ENDINGS.format(word="[A-Za-z0-9]"))


@cache
def _clusters() -> re.Pattern[str]:
    """Match a letter of any script with its marks."""
    known = alphabet()
    return re.compile(f"[{known.words}{known.dense}][{known.marks}]*")


@cache
def _dense() -> re.Pattern[str]:
    return re.compile(f"[{alphabet().dense}]+")


def n_dense(text: str) -> int:
    """Count the characters of scripts without spaces."""
    return 0 if text.isascii() else sum(len(run) for run in _dense().findall(text))


def bigrams(run: str) -> list[str]:
    """Return the pairs of adjacent characters; a single character is returned as it is.

    Parameters
    ----------
    run : str
        Characters of a script without spaces.

    Returns
    -------
    pairs : list of str
        Pairs of characters, each with its marks.

    Examples
    --------
    >>> bigrams("東京都")
    ['東京', '京都']
    """
    characters = _clusters().findall(run)
    return [a + b for a, b in pairwise(characters)] or characters


def _split(text: str, cut: Callable[[str], Iterable[str]]) -> list[str]:
    """Return words, with runs of scripts without spaces split by a function."""
    if text.isascii():
        return [_without_ending(word) for word in _ascii_runs().findall(text)]
    tokens: list[str] = []
    for dense, word in _runs().findall(text):
        if dense:
            tokens += cut(dense)
        else:
            tokens.append(_without_ending(word))
    return tokens


def _without_ending(word: str) -> str:
    """Return "pastor" for "pastor's" and "we" for "we'll"; "don't" stays."""
    if word.isalnum():
        return word
    stem, quote, ending = word.replace("\u2019", "'").partition("'")
    is_negation = ending.lower() == "t" and stem[-1:].lower() == "n"
    return (stem + quote + ending if is_negation else stem).strip(JOINERS)


def _auto(text: str) -> list[str]:
    return _split(text, bigrams)


def _words(text: str) -> list[str]:
    return _split(text, lambda run: [run])


def _characters(text: str) -> list[str]:
    return [pair for word in _words(text) for pair in bigrams(word)]


def _jieba(text: str) -> list[str]:
    cut = _loaded_jieba()
    return _split(text, lambda run: cut(run) if _has_han(run) else bigrams(run))


def _janome(text: str) -> list[str]:
    cut = _loaded_janome()
    return _split(text, lambda run: cut(run) if _has_han(run) else bigrams(run))


def _has_han(run: str) -> bool:
    return any(character >= "\u2e80" for character in run)


@cache
def _loaded_jieba() -> Any:
    try:
        import jieba
    except ImportError as error:
        raise ImportError("tokenizer='jieba' needs the package jieba; install it, or use tokenizer='auto'.") from error
    jieba.setLogLevel("WARNING")
    return jieba.lcut


@cache
def _loaded_janome() -> Any:
    try:
        from janome.tokenizer import Tokenizer
    except ImportError as error:
        raise ImportError(
            "tokenizer='janome' needs the package janome; install it, or use tokenizer='auto'."
        ) from error
    tokenizer = Tokenizer(wakati=True)
    return lambda run: list(tokenizer.tokenize(run))


TOKENIZERS: dict[str, Tokenizer] = {
    "auto": _auto,
    "words": _words,
    "characters": _characters,
    "whitespace": str.split,
    "jieba": _jieba,
    "janome": _janome,
}


def tokenizer_of(tokenizer: str | Tokenizer) -> Tokenizer:
    """Return a tokenizer by its name, or the one that is given.

    Parameters
    ----------
    tokenizer : {"auto", "words", "characters", "whitespace", "jieba", "janome"} or callable
        "words" takes runs of letters and digits; "auto" does so too, except for pairs of characters in scripts without
        spaces; "characters" takes pairs everywhere; "whitespace" splits at white space only. "jieba" and "janome"
        split Chinese and Japanese into words with those packages.

    Returns
    -------
    tokenize : callable
        A text in, a list of words out.
    """
    if callable(tokenizer):
        return tokenizer
    if not isinstance(tokenizer, str) or tokenizer not in TOKENIZERS:
        raise ValueError(f"tokenizer={tokenizer!r} must be one of {', '.join(TOKENIZERS)}, or a callable.")
    return TOKENIZERS[tokenizer]
