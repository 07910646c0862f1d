"""Reports on collections of texts: what was read, what was left out and why, as plain data and as lines of text."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.features.counting import Tally
from countinggrids.features.documents import Document
from countinggrids.features.text import Words

MOST_LISTED = 1000
"""Documents of each kind that the data lists."""
MOST_SHOWN = 8
"""Documents that a line of text lists."""
N_LONGEST = 5
LARGE_FRACTION = 0.05
"""Fraction of all tokens from which the report warns of a single text."""
N_WORDS = 10
Report = dict[str, Any]


class DocumentLog:
    """A log of empty texts and duplicates among documents."""

    def __init__(self) -> None:
        self.n_texts = 0
        self.empty = Listing()
        self.wordless = Listing()
        self.duplicates = Listing()
        self._first: dict[bytes, str | int] = {}

    def add(self, document: Document) -> Document:
        """Log a document; return it with a number if it had none."""
        self.n_texts += 1
        document = document if document.row else document._replace(row=self.n_texts)
        plain = " ".join(document.text.casefold().split())
        if not plain:
            self.empty.add(document.source, name_of(document))
            return document
        digest = blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in self._first:
            self.duplicates.add(document.source, [self._first[digest], name_of(document)])
        else:
            self._first[digest] = name_of(document)
        return document


def name_of(document: Document) -> str | int:
    """Return the path of a document, or the number of its row."""
    return document.path or document.row


class Listing:
    """Documents by source: their paths, or the numbers of their rows."""

    def __init__(self) -> None:
        self.n = 0
        self.listed: dict[str, list[Any]] = {}

    def add(self, source: str, name: Any) -> None:
        """Count a document, and list it unless there are too many."""
        self.n += 1
        if self.n <= MOST_LISTED:
            self.listed.setdefault(source, []).append(name)

    def facts(self) -> Report:
        """Return the number and the list as plain data."""
        return {"n": self.n, "rows": self.listed}


def report_of(
    log: DocumentLog,
    tally: Tally,
    documents: Sequence[Document],
    counts: sp.csr_array,
    words: Words,
    sources: Iterable[Report],
) -> Report:
    """Return the report on a collection of texts as plain data.

    Parameters
    ----------
    log : DocumentLog
        Log of all documents.
    tally : Tally
        Words that were dropped.
    documents : sequence of Document
        Documents in the collection.
    counts : csr_array of shape (n_documents, n_words)
        Their counts.
    words : Words
        How they were counted.
    sources : iterable of dict
        How files were read.

    Returns
    -------
    report : dict
        The report.
    """
    totals = np.asarray(counts.sum(axis=0)).ravel()
    names = words.names_
    largest = np.argsort(-totals, kind="stable")[:N_WORDS]
    return {
        "sources": list(sources),
        "texts": log.n_texts,
        "bagged": len(documents),
        "empty": log.empty.facts(),
        "without_words": log.wordless.facts(),
        "duplicates": log.duplicates.facts(),
        "longest": _longest(documents, counts),
        "counting": _counting(words),
        "words": len(names),
        "tokens_kept": int(totals.sum()),
        "largest_words": {names[i]: int(totals[i]) for i in largest.tolist()},
    } | tally.facts()


def _counting(words: Words) -> Report:
    """Return the settings that select words."""
    return {
        "tokenizer": words.tokenizer if isinstance(words.tokenizer, str) else "function",
        "min_df": words.min_df,
        "max_df": words.max_df,
        "stop_words": words.stop_words if isinstance(words.stop_words, str) else "list" if words.stop_words else "none",
        "n_stop_words": len(words.stop_words_),
    }


def _longest(documents: Sequence[Document], counts: sp.csr_array) -> list[Report]:
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    order = np.argsort(-lengths, kind="stable")[:N_LONGEST].tolist()
    return [
        {
            "title": documents[i].title[:80],
            "row": name_of(documents[i]),
            "tokens": int(lengths[i]),
            "fraction": round(float(lengths[i] / max(lengths.sum(), 1)), 4),
        }
        for i in order
    ]


def lines_of(report: Report) -> list[str]:
    """Format a report as lines of text.

    Parameters
    ----------
    report : dict
        As returned by `report_of`.

    Returns
    -------
    lines : list of str
        Lines of text.

    Raises
    ------
    ValueError
        If it is not a report, as in a file that was changed.
    """
    try:
        return _lines_of(report)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"the report on the texts is damaged ({error!r}); bag the texts again.") from error


def _lines_of(report: Report) -> list[str]:
    found = [line for source in report["sources"] for line in _source_lines(source)]
    found.append(f"texts: {report['texts']:,} read, {report['bagged']:,} bagged")
    for name, what in (("empty", "empty texts"), ("without_words", "texts without a word of the vocabulary")):
        if report[name]["n"]:
            found.append(f"{what}: {report[name]['n']:,}, left out ({_shown(report[name])})")
    if report["duplicates"]["n"]:
        found.append(f"duplicates of an earlier text: {report['duplicates']['n']:,}, bagged too ({_pairs(report)})")
    return found + _length_lines(report) + _word_lines(report)


def _source_lines(source: Report) -> list[str]:
    parts = [f"{source['rows']:,} rows or lines" if "encodings" not in source else f"{source['rows']:,} files"]
    if "column" in source:
        parts.append(f"text from column {source['column']['name']!r} ({source['column']['reason']})")
    if "encoding" in source:
        parts.append(_encoding(source["encoding"]))
    if "encodings" in source:
        parts.append(", ".join(f"{n:,} in {name}" for name, n in source["encodings"].items()))
    if "delimiter" in source:
        parts.append(f"delimiter {source['delimiter']}" + ("" if source["header"] else ", no header"))
    noticed = [*_noticed(source), *(_date_lines(source["dates"]) if "dates" in source else [])]
    return [f"{source['source']}: {'; '.join(parts)}", *(f"  {line}" for line in noticed)]


def _encoding(encoding: Report) -> str:
    text = f"encoding {encoding['name']} ({encoding['certainty']}, {encoding['reason']}"
    if "alternatives" in encoding:
        text += f"; {', '.join(encoding['alternatives'])} would fit as well: check the letters, or use --encoding"
    if "invalid_bytes" in encoding:
        text += f"; {encoding['invalid_bytes']:,} invalid bytes replaced by U+FFFD"
    return text + ")"


NOTICED = {
    "ragged_rows": "rows with another number of fields than the header",
    "stray_quotes": "quotes that are never closed, read as plain characters",
    "unreadable": "unreadable, left out",
    "guessed_encodings": "files whose encoding is a guess",
}


def _noticed(source: Report) -> list[str]:
    found = [
        f"{text}: {source[name]['n']:,} (such as {'; '.join(source[name]['examples'][:3])})"
        for name, text in NOTICED.items()
        if name in source
    ]
    counts = {"blank_lines": "blank lines, left out", "zero_bytes": "zero bytes, removed"}
    return found + [f"{text}: {source[name]:,}" for name, text in counts.items() if name in source]


def _date_lines(dates: Report) -> list[str]:
    span = f" from {dates['first']} to {dates['last']}" if dates["read"] else ""
    found = [f"dates: {dates['read']:,} read{span} ({dates['format']}), {dates['missing']:,} missing"]
    if dates["unread"]:
        found.append(f"dates not read: {dates['unread']:,}, such as {', '.join(map(repr, dates['examples']))}")
    if dates["ambiguous"]:
        found.append(
            f"{dates['ambiguous']:,} of them may have the day or the month first; "
            "use --date-format '%d/%m/%Y' or '%m/%d/%Y'"
        )
    return found


def _shown(listing: Report) -> str:
    """List some documents, with their sources if there are several."""
    parts = []
    for source, names in listing["rows"].items():
        prefix = f"{source}: " if len(listing["rows"]) > 1 else ""
        rows = "" if isinstance(names[0], str) else "row " if len(names) == 1 else "rows "
        parts.append(prefix + rows + ", ".join(map(str, names[:MOST_SHOWN])))
    hidden = listing["n"] - sum(len(names[:MOST_SHOWN]) for names in listing["rows"].values())
    return "; ".join(parts) + (f" and {hidden:,} more" if hidden else "")


def _pairs(report: Report) -> str:
    pairs = [pair for names in report["duplicates"]["rows"].values() for pair in names]
    shown = ", ".join(f"{again} as {first}" for first, again in pairs[:3])
    return ("row " if isinstance(pairs[0][0], int) else "") + shown


def _length_lines(report: Report) -> list[str]:
    shown = [f"{each['title']!r} {each['tokens']:,} ({each['fraction']:.1%})" for each in report["longest"][:3]]
    found = [f"longest texts, in tokens kept: {', '.join(shown)}"]
    heavy = [each for each in report["longest"] if each["fraction"] >= LARGE_FRACTION]
    if heavy and report["bagged"] > 2 / LARGE_FRACTION:
        found.append(f"  {len(heavy)} with over {LARGE_FRACTION:.0%} of all tokens dominate the map: cut or drop them")
    return found


def _word_lines(report: Report) -> list[str]:
    kept = f"{report['words']:,} words; {report['tokens_kept']:,} of {report['tokens']:,} tokens kept"
    how = report["counting"]
    found = [
        f"counting: tokenizer {how['tokenizer']}, words in at least {_documents(how['min_df'])} and at most "
        f"{_documents(how['max_df'])}, stop words {how['stop_words']} ({how['n_stop_words']:,})",
        f"vocabulary: {kept}; most frequent: {', '.join(report['largest_words'])}",
    ]
    for reason, each in report["dropped"].items():
        examples = ", ".join(each["examples"])
        found.append(f"  dropped, {reason}: {each['tokens']:,} tokens, {each['words']:,} different ({examples})")
    if report["texts_with_html"]:
        found.append(f"texts with HTML tags or entities, removed or decoded: {report['texts_with_html']:,}")
    if report["fraction_without_spaces"]:
        found.append(f"scripts without spaces: {report['fraction_without_spaces']:.1%} of the characters")
    return found


def _documents(limit: float) -> str:
    return f"{limit:.4g} of the texts" if isinstance(limit, float) else f"{limit:,} texts"
