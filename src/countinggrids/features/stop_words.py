"""Stop words: function words of English."""

from collections.abc import Iterable

_ENGLISH = """
a an the this that these those each every such both all any some no few many much more most other others same
i me my myself we our ours you your yours yourself he him his himself she her hers herself it its itself they them
their theirs themselves one who whom whose which what
of in on at by for with from to into upon about over under between among through during before after against within
without toward until since per than as off out up down
and or but nor so if because although though while whether unless when where why how
am is are was were be been being have has had having do does did doing will would shall should can could may might
must cannot
not too very just only also then there here now
don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't won't wouldn't shouldn't can't couldn't
"""
ENGLISH = frozenset(_ENGLISH.split())
FREQUENT = frozenset(("the", "of", "and", "to", "is", "that", "with", "it", "for", "this"))
"""Words that are frequent in English and in no other language."""
LEAST_FRACTION = 0.08
"""Fraction of these from which texts count as English: running text has about 0.2, Dutch 0.03."""


def looks_english(words: Iterable[str]) -> bool:
    """Return whether at least 8% of the words are the, of, and, to, is, that, with, it, for or this."""
    are_frequent = [word.lower() in FREQUENT for word in words]
    return bool(are_frequent) and sum(are_frequent) >= LEAST_FRACTION * len(are_frequent)
