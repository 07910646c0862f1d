"""Removal of markup, URLs and e-mail addresses from texts; every pattern takes linear time."""

import html
import re
from functools import cache
from typing import NamedTuple

# `html.parser` takes quadratic time for some texts: hours for a megabyte of "<a ". Hence patterns that never go past
# the next "<", and searches that are not repeated once they have found nothing.
ELEMENTS = (
    "a|abbr|address|area|article|aside|audio|b|base|big|blockquote|body|br|button|canvas|caption|center|cite|code|col"
    "|colgroup|dd|del|details|div|dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html"
    "|i|iframe|img|input|ins|label|legend|li|link|main|map|mark|meta|nav|nobr|noscript|object|ol|option|p|param|path"
    "|picture|pre|q|s|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td"
    "|textarea|tfoot|th|thead|time|title|tr|tt|u|ul|video|wbr|[ovw]:[a-z]{1,20}"
)
TAG = re.compile(rf"<(?:/?({ELEMENTS})(?=[\s/>])[^<>]*|!doctype[^<>]*|!--|\?xml[^<>]*)>?", re.IGNORECASE)
INSIDE_WORDS = frozenset(
    (
        "b",
        "big",
        "del",
        "em",
        "font",
        "i",
        "ins",
        "mark",
        "s",
        "small",
        "strike",
        "strong",
        "sub",
        "sup",
        "tt",
        "u",
        "wbr",
    )
)
BLOCK = re.compile(r"<(!--|script\b|style\b)", re.IGNORECASE)
ENDS = {
    "!--": re.compile(r"-->"),
    "script": re.compile(r"</script\s{0,99}>", re.IGNORECASE),
    "style": re.compile(r"</style\s{0,99}>", re.IGNORECASE),
}
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@([\w-]{1,63}(?:\.[\w-]{1,63}){1,8})")


class Cleaned(NamedTuple):
    """A text from which addresses were removed.

    Attributes
    ----------
    text : str
        The text.
    hosts : list of str
        Host of each address.
    """

    text: str
    hosts: list[str]


def without_markup(text: str) -> str:
    """Remove the tags, comments, scripts and styles of HTML, and decode its entities.

    Only names of HTML elements count as tags, so that "a < b" and "<someone@example.org>" stay.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    text : str
        The text without HTML.

    Examples
    --------
    >>> without_markup("<p>Tea &amp; <b>c</b>ups if 1 < 2</p>").strip()
    'Tea & cups if 1 < 2'
    """
    if "<" not in text and "&" not in text:
        return text
    text = _without_tags(text)
    decoded = ENTITY.sub(lambda found: html.unescape(found[0]), text)
    # Feeds and exports have markup whose brackets are entities.
    return text if decoded == text else _without_tags(decoded)


def without_urls(text: str) -> Cleaned:
    """Remove addresses of web pages."""
    if "://" not in text and "www." not in text.lower():
        return Cleaned(text, [])
    hosts: list[str] = []

    def note(found: re.Match[str]) -> str:
        hosts.append(found[1].lower())
        return " "

    return Cleaned(_url().sub(note, text), hosts)


def without_emails(text: str) -> Cleaned:
    """Remove e-mail addresses."""
    if "@" not in text:
        return Cleaned(text, [])
    hosts: list[str] = []

    def note(found: re.Match[str]) -> str:
        hosts.append("@" + found[1].lower())
        return " "

    return Cleaned(EMAIL.sub(note, text), hosts)


def _without_tags(text: str) -> str:
    if TAG.search(text) is None:
        return text

    def space(found: re.Match[str]) -> str:
        return "" if (found[1] or "").lower() in INSIDE_WORDS else " "

    return TAG.sub(space, _without_blocks(text))


def _without_blocks(text: str) -> str:
    """Remove comments, scripts and styles; those that never end stay."""
    kept, begin, endless = [], 0, set()
    for found in BLOCK.finditer(text):
        kind = found[1].lower()
        if found.start() < begin or kind in endless:
            continue
        end = ENDS[kind].search(text, found.end())
        if end is None:
            endless.add(kind)
            continue
        kept.append(text[begin : found.start()])
        begin = end.end()
    return " ".join([*kept, text[begin:]])


@cache
def _url() -> re.Pattern[str]:
    from countinggrids.features.tokenizers import alphabet

    # In scripts without spaces, letters or punctuation of these scripts end an address.
    ends = rf"\s<>\"){alphabet().dense}。、「」『』"
    return re.compile(
        rf"(?:(?<![a-z0-9])[a-z][a-z0-9+.-]{{1,9}}://|(?<![a-z0-9])(?=www\.))([^/{ends}]+)[^{ends}]*", re.IGNORECASE
    )
