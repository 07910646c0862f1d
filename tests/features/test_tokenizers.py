"""Tokenizers by name, in many scripts."""

import sys

import pytest

from countinggrids.features import Words, tokenizers
from countinggrids.features.tokenizers import bigrams, n_dense, tokenizer_of

CASES = {
    "the pastor's cup, don't we'll 10th a_b": ["the", "pastor", "cup", "don't", "we", "10th", "a", "b"],
    "the pastor\u2019s don\u2019t": ["the", "pastor", "don't"],
    "l'homme c'est naïve": ["l", "homme", "c", "est", "naïve"],
    "हिन्दी में लिखा": ["हिन्दी", "में", "लिखा"],
    "שָׁלוֹם עולם": ["שָׁלוֹם", "עולם"],
    "مَرْحَبًا بالعالم": ["مَرْحَبًا", "بالعالم"],
    "می\u200cخواهم": ["می\u200cخواهم"],
    "한국어 단어": ["한국어", "단어"],
    "東京都tea茶": ["東京", "京都", "tea", "茶"],
    "สวัสดี": ["สวั", "วัส", "สดี"],
    "☕🎉👨\u200d👩\u200d👧": [],
    "": [],
}


@pytest.mark.parametrize(("text", "wanted"), CASES.items())
def test_words_of_every_script(text, wanted):
    assert tokenizer_of("auto")(text) == wanted


def test_the_other_tokenizers():
    assert tokenizer_of("words")("東京都 tea") == ["東京都", "tea"]
    assert tokenizer_of("characters")("東京都 tea") == ["東京", "京都", "te", "ea"]
    assert tokenizer_of("whitespace")("a-b  c's") == ["a-b", "c's"]
    assert bigrams("茶") == ["茶"]
    assert n_dense("東京 tea สวัสดี") == 2 + 6


def test_chinese_and_japanese_by_their_packages():
    pytest.importorskip("jieba")
    pytest.importorskip("janome")
    assert tokenizer_of("jieba")("我们去公园 tea") == ["我们", "去", "公园", "tea"]
    assert tokenizer_of("janome")("東京都は日本です") == ["東京", "都", "は", "日本", "です"]


@pytest.mark.parametrize("name", ["jieba", "janome"])
def test_a_missing_package_is_named(monkeypatch, name):
    for module in (name, f"{name}.tokenizer"):
        monkeypatch.setitem(sys.modules, module, None)
    getattr(tokenizers, f"_loaded_{name}").cache_clear()
    with pytest.raises(ImportError, match=f"tokenizer='{name}' needs the package {name}; install it, or use"):
        Words(tokenizer=name).fit(["東京"])
    getattr(tokenizers, f"_loaded_{name}").cache_clear()


def test_unknown_tokenizers_are_refused():
    for bad in ("french", None, {"name": "words"}, r"(\w+)+$"):
        with pytest.raises(ValueError, match=r"tokenizer=.* must be one of auto, words, characters"):
            tokenizer_of(bad)
