"""`countinggrids bag text`: from texts to a collection, with a report on what was read."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from countinggrids.cli import bag, common, progress


class TextLayout(StrEnum):
    """Layout of the files."""

    auto = "auto"
    ap = "ap"


class TokenizerName(StrEnum):
    """Tokenizers."""

    auto = "auto"
    words = "words"
    characters = "characters"
    whitespace = "whitespace"
    jieba = "jieba"
    janome = "janome"


def column_option(what: str, *names: str) -> Any:
    """Return the option of a column, with other names than that of the parameter if they are given."""
    return typer.Option(*names, help=f"Column of the {what}: its name, or its number from 1.")


def text(
    sources: Annotated[
        list[Path], typer.Argument(help="Text files (one document per line), folders (one per file), or tables.")
    ],
    output: bag.Output,
    column: Annotated[str | None, column_option("text", "--text", "--column")] = None,
    title: Annotated[str | None, column_option("title")] = None,
    link: Annotated[str | None, column_option("link")] = None,
    label: Annotated[str | None, column_option("label")] = None,
    date: Annotated[str | None, column_option("date or time", "--time", "--date")] = None,
    date_format: Annotated[
        str | None, typer.Option(help="Format of dates, such as %d/%m/%Y; by default the common ones.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the files, such as cp1252; detected by default.")
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(help="Delimiter of CSV and TSV: comma, tab, semicolon, pipe or a character; detected."),
    ] = None,
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="Whether the first row of CSV and TSV names the columns.")
    ] = True,
    layout: Annotated[
        TextLayout, typer.Option(help="Layout of the files: by their suffix, or that of the AP corpus.")
    ] = TextLayout.auto,
    min_df: Annotated[
        float | None,
        typer.Option(help="Smallest document frequency of a word; a fraction if below 1; 2 by default."),
    ] = None,
    max_df: Annotated[
        float | None,
        typer.Option(help="Largest document frequency of a word; a fraction if at most 1; 0.5 by default."),
    ] = None,
    stop_words: Annotated[
        str | None,
        typer.Option(
            help="Words to drop: a file, none, english (function words), or auto (english if the texts are English). "
            "auto by default."
        ),
    ] = None,
    tokenizer: Annotated[
        TokenizerName | None,
        typer.Option(help="How texts are split into words; auto uses character pairs for scripts without spaces."),
    ] = None,
    min_length: Annotated[
        int | None, typer.Option(help="Smallest number of characters of a word; 2 by default.", min=1)
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="What is counted instead of dropped, of numbers,urls,emails,html.")
    ] = None,
    ngrams: Annotated[int | None, typer.Option(help="Longest n-gram; 1 by default.", min=1)] = None,
    max_words: Annotated[int | None, typer.Option(help="Number of words, the most frequent ones.", min=1)] = None,
    codebook: Annotated[
        Path | None, typer.Option("--codebook", help="A collection whose words are counted.", exists=True)
    ] = None,
    keep_text: Annotated[bool, typer.Option(help="Keep the texts in the collection.")] = True,
    report: Annotated[Path | None, typer.Option(help="Where to write the report as JSON.")] = None,
    strict: bag.Strict = False,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Bag texts, and report what was read, what was left out and why."""
    with common.errors():
        listed = None if stop_words in (None, "auto", "english", "none") else Path(stop_words)
        _check_outputs(output, report, force)
        inputs = [("--codebook", codebook), ("--stop-words", listed), *(("SOURCES", source) for source in sources)]
        common.check_apart(inputs, [("--output", output), ("--report", report)])
        for source in sources:
            common.check_spares(source, output)
        counting = {"min-df": min_df, "max-df": max_df, "stop-words": stop_words, "tokenizer": tokenizer}
        counting |= {"min-length": min_length, "keep": keep, "ngrams": ngrams, "max-words": max_words}
        words = _words({name: value for name, value in counting.items() if value is not None}, codebook)
        from countinggrids.data.collection import Collection
        from countinggrids.features.text import Columns, read_documents

        skipped: list[str] = []
        documents: Any = read_documents(
            sources,
            Columns(column, title, link, label, date),
            "raise" if strict else lambda error: skipped.append(str(error)),
            encoding=encoding,
            delimiter=delimiter,
            has_header=header,
            date_format=date_format,
        )
        root = documents.root
        if layout is TextLayout.ap:
            from countinggrids import datasets

            documents = (document for source in sources for document in datasets.ap(source))
        with progress.count_bar("counting words") as callback:
            collection = Collection.from_texts(documents, words, root, keep_text, callback)
        _show(collection.report, report)
        bag.finish(collection, output, skipped, as_json)


def _check_outputs(output: Path, report: Path | None, force: bool) -> None:
    common.check_output(output, force)
    if report is not None:
        common.check_output(report, force)


def _words(given: dict[str, Any], codebook: Path | None) -> Any:
    """Return the extractor of the codebook, or one with the options."""
    from countinggrids.features import Words

    if codebook is not None:
        if given:
            names = ", ".join(f"--{name}" for name in given)
            raise ValueError(f"{names} cannot be used with --codebook, which sets the same; leave one out.")
        [words] = bag.known_steps(codebook, "words")
        return words
    min_df, max_df = given.get("min-df", 2), given.get("max-df", 0.5)
    words = Words(
        int(min_df) if min_df >= 1 else min_df,
        int(max_df) if max_df > 1 else float(max_df),
        _stop_words(given.get("stop-words", "auto")),
        (1, given.get("ngrams", 1)),
        given.get("max-words"),
        tokenizer=str(given.get("tokenizer", "auto")),
        min_length=given.get("min-length", 2),
        keep=[name.strip() for name in given.get("keep", "").split(",") if name.strip()],
    )
    words._check_options()
    return words


def _stop_words(given: str) -> Any:
    if given in ("auto", "english", "none"):
        return None if given == "none" else given
    if not Path(given).is_file():
        raise ValueError(f"--stop-words={given} must be auto, english, none or a file of words; correct the path.")
    from countinggrids.features.encodings import read_text

    return read_text(given)[0].lower().split()


def _show(found: dict[str, Any], path: Path | None) -> None:
    """Log the report, and write it as JSON if a path is given."""
    from countinggrids.data import container
    from countinggrids.features.text_report import lines_of

    for line in lines_of(found):
        common.log(line)
    if path is not None:
        container.write_text(path, json.dumps(found, indent=1) + "\n")
