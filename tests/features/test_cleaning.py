"""Markup, addresses and entities out of texts, in linear time."""

import time

import pytest

from countinggrids.features.cleaning import without_emails, without_markup, without_urls
from countinggrids.features.tokenizers import TOKENIZERS

MAIL = """<!DOCTYPE html><html><head><title>Offer</title><style>p { color: red }</style>
<script>var tracking = "<p>";</script></head><body class="x">
<p>Dear&nbsp;friend,<br/>tea &amp; <b>c</b>ups &#39;here&#39;</p><!-- hidden --><o:p></o:p></body></html>"""


def test_html_mail_becomes_its_text():
    assert without_markup(MAIL).split() == ["Offer", "Dear", "friend,", "tea", "&", "cups", "'here'"]


@pytest.mark.parametrize(
    "text", ["if a < b and c > d", "<someone@example.org> wrote", "List<String> <DOC>", "AT&T; x && y", "<", "&", "<>"]
)
def test_what_is_no_markup_stays(text):
    assert without_markup(text) == text


def test_markup_in_entities_is_removed_too():
    assert without_markup("&lt;p class=&quot;x&quot;&gt;tea&lt;/p&gt;").strip() == "tea"


def test_blocks_that_never_end_keep_their_text():
    assert without_markup("<p>one <!-- two <script> three").split() == ["one", "two", "three"]


def test_addresses_are_removed_and_their_hosts_noted():
    text = "see https://Tea.org/a?b=1, www.cups.com (ftp://x.y/z) and 见http://茶.cn/路吗"
    assert without_urls(text).hosts == ["tea.org", "www.cups.com", "x.y"]
    assert without_urls("见http://tea.cn/路吗").text == "见 路吗"
    found = without_emails("write to a.b+c@d.co.uk or <me@x.org>.")
    assert found.hosts == ["@d.co.uk", "@x.org"]
    assert found.text == "write to   or < >."


NASTY = ["<a ", "<!--", "<script>", "<style>x</style", "<![CDATA[", "<", "&", "&#1", "&amp;", "a", "a@", "a.", "@"]
NASTY += ["www.", "http://", "://", "'s", "a'", "-", "é", "東", "a\u0301", "\u200d", "1", " ", "\x1b", "0/", "A-.+"]


@pytest.mark.parametrize("piece", NASTY)
def test_a_million_characters_take_seconds_whatever_they_are(piece):
    text = (piece * 1_000_000)[:1_000_000]
    began = time.monotonic()
    text = without_emails(without_urls(without_markup(text)).text).text
    for name in ("auto", "words", "characters", "whitespace"):
        TOKENIZERS[name](text)
    assert time.monotonic() - began < 30  # quadratic time would be hours
