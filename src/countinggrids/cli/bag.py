"""`countinggrids bag`: from raw files to a collection."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countinggrids.cli import common

if TYPE_CHECKING:
    from countinggrids.collection import Collection
    from countinggrids.features.text import Document
    from countinggrids.items import Items

app = typer.Typer(help="Turn images, frames or texts into bags of features.", no_args_is_help=True)


class Kind(StrEnum):
    """What the features of an image are."""

    sift = "sift"
    colours = "colours"
    textons = "textons"
    labels = "labels"


class Layout(StrEnum):
    """How a folder of images is laid out."""

    folder = "folder"
    scenes15 = "scenes15"
    indoor67 = "indoor67"
    labelme = "labelme"


class TextLayout(StrEnum):
    """How documents lie in a file."""

    auto = "auto"
    ap = "ap"


Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the collection.")]
Features = Annotated[Kind | None, typer.Option(help="What counts as a feature; sift if left out.")]
NWords = Annotated[
    int | None, typer.Option("--words", min=1, help="How many words, colours, textons or labels to learn.")
]
Patch = Annotated[int | None, typer.Option(min=1, help="Pixels along each side of a patch (sift 16, textons 8).")]
Step = Annotated[
    int | None, typer.Option(min=1, help="Pixels from one feature to the next (sift 8, textons 4, colours 8).")
]
Sections = Annotated[
    str | None, typer.Option(help="Parts that each image is cut into, such as 4x4; the codebook's, or 1x1.")
]
Book = Annotated[
    Path | None,
    typer.Option("--codebook", help="A collection whose words to use instead of learning some.", exists=True),
]
MaxSide = Annotated[
    int | None,
    typer.Option(min=0, help="Shrink images whose longer side has more pixels; 0 keeps them; 512 if left out."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first file that cannot be read.")]


@app.command()
def images(
    folder: Annotated[Path, typer.Argument(help="Folder of images; sub-folders are labels.")],
    output: Output,
    features: Features = None,
    words: NWords = None,
    patch: Patch = None,
    step: Step = None,
    sections: Sections = None,
    layout: Annotated[Layout, typer.Option(help="How the folder is laid out.")] = Layout.folder,
    codebook: Book = None,
    max_side: MaxSide = None,
    seed: common.Seed = 0,
    strict: Strict = False,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Bag the images of a folder."""
    with common.errors():
        common.check_output(output, force)
        from countinggrids import datasets

        how = Extraction(features, words, patch, step, sections, codebook, max_side, seed, strict)
        how.check()
        items = getattr(datasets, layout.value)(folder)
        column = "annotation" if how.wants_labels() and "annotation" in items else "path"
        _bag_images(items, [items.root / name for name in items[column]], how, output, as_json)


@app.command()
def frames(
    source: Annotated[Path, typer.Argument(help="A video, or a folder of frames with a sub-folder per sequence.")],
    output: Output,
    labels: Annotated[
        Path | None, typer.Option(help="CSV with columns path and label: the places.", exists=True)
    ] = None,
    every: Annotated[float, typer.Option(help="Of a video: seconds from one frame to the next.")] = 1.0,
    features: Features = None,
    words: NWords = None,
    patch: Patch = None,
    step: Step = None,
    sections: Sections = None,
    codebook: Book = None,
    max_side: MaxSide = None,
    seed: common.Seed = 0,
    strict: Strict = False,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Bag the frames of a video, or ordered frames in folders."""
    with common.errors():
        common.check_output(output, force)
        from countinggrids import datasets
        from countinggrids.features.video import Video, is_video_path

        how = Extraction(features, words, patch, step, sections, codebook, max_side, seed, strict)
        how.check()
        sources: Iterable[Any]
        if is_video_path(source):
            if labels is not None:
                raise ValueError("--labels does not go with a video; wanted a folder of frames; leave it out")
            items, sources = datasets.video(source, every), Video(source, every)
        else:
            items = datasets.frames(source, labels)
            sources = [items.path(i) for i in range(len(items))]
        _bag_images(items, sources, how, output, as_json)


@app.command()
def text(
    sources: Annotated[
        list[Path], typer.Argument(help="Text files (a document a line), folders (a document a file), or tables.")
    ],
    output: Output,
    column: Annotated[str | None, typer.Option(help="Column that holds the text.")] = None,
    title: Annotated[str | None, typer.Option(help="Column that holds the title.")] = None,
    link: Annotated[str | None, typer.Option(help="Column that holds a link.")] = None,
    label: Annotated[str | None, typer.Option(help="Column that holds the label.")] = None,
    date: Annotated[str | None, typer.Option(help="Column that holds the date.")] = None,
    layout: Annotated[TextLayout, typer.Option(help="By the file's ending, or the AP stories.")] = TextLayout.auto,
    min_df: Annotated[float, typer.Option(help="Documents a word must occur in; a share if below 1.")] = 2,
    max_df: Annotated[float, typer.Option(help="Documents a word may occur in; a share if at most 1.")] = 0.5,
    stop_words: Annotated[str, typer.Option(help="Words to leave out: english, none, or a file of them.")] = "english",
    ngrams: Annotated[int, typer.Option(help="Longest sequence of words that counts as one.", min=1)] = 1,
    max_words: Annotated[int | None, typer.Option(help="Keep this many words, the most frequent.")] = None,
    codebook: Annotated[
        Path | None, typer.Option("--codebook", help="A collection whose words to count.", exists=True)
    ] = None,
    keep_text: Annotated[bool, typer.Option(help="Keep the texts themselves in the collection.")] = True,
    strict: Strict = False,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Bag texts."""
    with common.errors():
        common.check_output(output, force)
        from countinggrids import datasets
        from countinggrids.collection import Collection
        from countinggrids.features.text import Columns, Words, raise_it, read_documents

        skipped: list[str] = []
        complain = raise_it if strict else lambda error: skipped.append(str(error))
        columns = Columns(column, title, link, label, date)
        readers = {"auto": lambda path: read_documents(path, columns, complain), "ap": datasets.ap}
        documents = (_placed(document, source, sources) for source in sources for document in readers[layout](source))
        if codebook is None:
            counter = Words(
                int(min_df) if min_df >= 1 else min_df,
                int(max_df) if max_df > 1 else max_df,
                _stop_words(stop_words),
                (1, ngrams),
                max_words,
            )
        else:
            [counter] = _known_steps(codebook, "words")
        with common.counting("counting words") as watch:
            collection = Collection.from_texts(
                documents, counter, _root(sources), keep_text, lambda done: watch(done, None)
            )
        _finish(collection, output, skipped, as_json)


class Extraction(NamedTuple):
    """What the options say about features."""

    kind: Kind | None
    words: int | None
    patch: int | None
    step: int | None
    sections: str | None
    codebook: Path | None
    max_side: int | None
    seed: int
    strict: bool

    def check(self) -> None:
        """Raise about options that do not go together, before any work."""
        from countinggrids.geometry import as_shape

        if self.sections is not None:
            as_shape(common.shape(self.sections, "sections"), "sections", 2)
        decided = {"features": self.kind, "words": self.words, "patch": self.patch, "step": self.step}
        decided |= {"max-side": self.max_side}
        given = [f"--{name}" for name, value in decided.items() if value is not None]
        if self.codebook is not None and given:
            raise ValueError(f"{', '.join(given)} given with --codebook, which decides that; leave one of them out")
        if self.patch is not None and self.kind in (Kind.colours, Kind.labels):
            raise ValueError(
                f"--patch {self.patch} does not go with --features {self.kind}; wanted sift or textons; leave it out"
            )

    def wants_labels(self) -> bool:
        from countinggrids.features import LabelMaps

        return isinstance(self.steps()[0], LabelMaps)

    def steps(self) -> list[Any]:
        """Make the extractors: those of the codebook, or new ones, not yet fitted."""
        from countinggrids.features import Codebook, Colours, DenseSIFT, LabelMaps, Textons

        how: dict[str, Any] = {"on_error": "raise" if self.strict else "skip"}
        if self.codebook is not None:
            steps = _known_steps(self.codebook, "images")
            steps[0].set_params(**how)
            return steps
        how["max_side"] = None if self.max_side == 0 else self.max_side or 512
        places: dict[str, Any] = {"patch": self.patch, "step": self.step}
        places = {name: value for name, value in places.items() if value is not None}
        if self.kind is Kind.colours:
            return [Colours(self.words or 64, **{"step": 8} | places, random_state=self.seed, **how)]
        if self.kind is Kind.textons:
            return [Textons(self.words or 200, **places, random_state=self.seed, **how)]
        if self.kind is Kind.labels:
            return [LabelMaps(self.words, **places, **how)]
        return [DenseSIFT(**places, **how), Codebook(self.words or 200, random_state=self.seed)]


def _bag_images(items: "Items", sources: Iterable[Any], how: Extraction, output: Path, as_json: bool) -> None:
    from sklearn.pipeline import make_pipeline

    from countinggrids.collection import Collection

    steps = how.steps()
    sections = (1, 1) if how.sections is None else common.shape(how.sections, "sections")
    if how.codebook is None:
        with common.counting("learning words") as watch:
            steps[0].set_params(verbose=watch)
            make_pipeline(*steps).fit(sources)
    elif how.sections is None:
        sections = Collection.load(how.codebook).sections
    with common.counting("bagging") as watch:
        steps[0].set_params(verbose=watch)
        collection = Collection.from_images(items, steps, sections, sources)
    _finish(collection, output, [reason for _, reason in collection.skipped], as_json)


def _known_steps(codebook: Path, wanted: str) -> list[Any]:
    """Give the extractors of a collection, of words or of images."""
    from countinggrids.collection import Collection
    from countinggrids.features import Words

    steps = Collection.load(codebook).steps
    if not steps:
        raise ValueError(f"{codebook} does not know how its bags were made; wanted a collection that `bag` wrote")
    found = "words" if isinstance(steps[0], Words) else "images"
    if found != wanted:
        raise ValueError(f"{codebook} was made from {found}; wanted a collection made from {wanted}; give another")
    return steps


def _placed(document: "Document", source: Path, sources: list[Path]) -> "Document":
    """Make paths absolute where there are several folders they could be relative to."""
    if len(sources) == 1 or not document.path:
        return document
    return document._replace(path=str((source / document.path).absolute()))


def _finish(collection: "Collection", output: Path, skipped: list[str], as_json: bool) -> None:
    """Write the collection, and tell what is in it and what is not."""
    collection.save(output)
    for reason in skipped[:10]:
        common.say(f"skipped: {reason}")
    if skipped:
        common.say(f"{len(skipped)} skipped in all, {len(collection)} bagged; --strict makes them errors")
    common.print_facts(facts(collection) | {"skipped": len(skipped), "collection": str(output)}, as_json)


def facts(collection: "Collection") -> dict[str, Any]:
    """Tell what a collection holds."""
    n_tokens = float(collection.counts.data.sum())
    return {
        "bags": len(collection),
        "features": len(collection.vocabulary),
        "kind": collection.vocabulary.kind,
        "sections": list(collection.sections),
        "tokens_a_bag": round(n_tokens / max(len(collection), 1), 1),
        "empty_bags": int((collection.counts.sum(axis=1) == 0).sum()),
        "known_of_items": list(collection.items.columns),
    }


def _stop_words(text: str) -> Any:
    if text in ("english", "none"):
        return None if text == "none" else text
    if not Path(text).is_file():
        raise ValueError(f"--stop-words is {text!r}; wanted english, none or a file with a word a line; check the path")
    return Path(text).read_text(encoding="utf-8").split()


def _root(sources: list[Path]) -> str:
    """Give the folder that documents' paths are relative to: there is one only if a single folder was given."""
    return str(sources[0].absolute()) if len(sources) == 1 and sources[0].is_dir() else ""
