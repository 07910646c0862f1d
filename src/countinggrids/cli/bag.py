"""`countinggrids bag`: from raw files to a collection."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countinggrids.cli import common, progress
from countinggrids.cli.descriptor_options import (
    DescriptorsFolder,
    Kind,
    Learned,
    MetricOption,
    Onnx,
    Own,
    Pca,
    Skip,
    Soft,
    Tensor,
    Whiten,
)

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection
    from countinggrids.data.items import Items

app = typer.Typer(help="Count the features of images, frames or texts.", no_args_is_help=True)


class Layout(StrEnum):
    """Layout of a folder of images."""

    folder = "folder"
    scenes15 = "scenes15"
    indoor67 = "indoor67"
    labelme = "labelme"


Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the collection.")]
Features = Annotated[Kind | None, typer.Option(help="Kind of feature; sift by default.")]
NWords = Annotated[int | None, typer.Option("--words", min=1, help="Number of words, colors, textons or labels.")]
Patch = Annotated[
    int | None, typer.Option(min=1, help="Side of a patch in pixels (by default 16 for sift, 8 for textons).")
]
Step = Annotated[
    int | None, typer.Option(min=1, help="Pixels between features (by default 8 for sift and colors, 4 for textons).")
]
Sections = Annotated[
    str | None, typer.Option(help="Sections of each image, such as 4x4; by default those of the codebook, or 1x1.")
]
Book = Annotated[
    Path | None,
    typer.Option("--codebook", help="A collection whose features are used instead of learning new ones.", exists=True),
]
MaxSide = Annotated[
    int | None,
    typer.Option(min=0, help="Downsample images whose longer side has more pixels; 512 by default, 0 for no limit."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first file that cannot be read.")]


@app.command()
def images(
    folder: Annotated[Path, typer.Argument(help="Folder of images; subfolders are labels.")],
    output: Output,
    features: Features = None,
    words: NWords = None,
    patch: Patch = None,
    step: Step = None,
    sections: Sections = None,
    layout: Annotated[Layout, typer.Option(help="Layout of the folder.")] = Layout.folder,
    codebook: Book = None,
    max_side: MaxSide = None,
    seed: common.Seed = 0,
    descriptors: DescriptorsFolder = None,
    onnx: Onnx = None,
    tensor: Tensor = None,
    skip: Skip = None,
    metric: MetricOption = None,
    pca: Pca = None,
    whiten: Whiten = False,
    soft: Soft = None,
    words_from: Learned = None,
    strict: Strict = False,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Bag the images of a folder."""
    with common.errors():
        common.check_output(output, force)
        inputs = [("FOLDER", folder), ("--codebook", codebook), ("--descriptors", descriptors), ("--onnx", onnx)]
        common.check_apart(inputs, [("--output", output)])
        common.check_spares(folder, output)
        from countinggrids import datasets

        own = Own(descriptors, onnx, tensor, skip, metric, pca, whiten, soft, words_from)
        how = Extraction(features, words, patch, step, sections, codebook, max_side, seed, strict, own)
        how.check()
        items = getattr(datasets, layout.value)(folder)
        column = "annotation" if how.wants_labels() and "annotation" in items else "path"
        sources = [items.root / name for name in items[column]]
        _bag_images(items, how.own.sources(items, sources), how, output, as_json)


@app.command()
def frames(
    source: Annotated[Path, typer.Argument(help="A video, or a folder of frames with a subfolder for each sequence.")],
    output: Output,
    labels: Annotated[Path | None, typer.Option(help="CSV with columns path and label.", exists=True)] = None,
    every: Annotated[float, typer.Option(help="Seconds between the frames of a video.")] = 1.0,
    features: Features = None,
    words: NWords = None,
    patch: Patch = None,
    step: Step = None,
    sections: Sections = None,
    codebook: Book = None,
    max_side: MaxSide = None,
    seed: common.Seed = 0,
    descriptors: DescriptorsFolder = None,
    onnx: Onnx = None,
    tensor: Tensor = None,
    skip: Skip = None,
    metric: MetricOption = None,
    pca: Pca = None,
    whiten: Whiten = False,
    soft: Soft = None,
    words_from: Learned = None,
    strict: Strict = False,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Bag the frames of a video, or of folders."""
    with common.errors():
        common.check_output(output, force)
        inputs = [("SOURCE", source), ("--labels", labels), ("--codebook", codebook)]
        inputs += [("--descriptors", descriptors), ("--onnx", onnx)]
        common.check_apart(inputs, [("--output", output)])
        common.check_spares(source, output)
        from countinggrids import datasets
        from countinggrids.features.video import Video, is_video_path

        own = Own(descriptors, onnx, tensor, skip, metric, pca, whiten, soft, words_from)
        how = Extraction(features, words, patch, step, sections, codebook, max_side, seed, strict, own)
        how.check()
        sources: Iterable[Any]
        if is_video_path(source):
            for name, given in (("--labels", labels), ("--descriptors", descriptors)):
                if given is not None:
                    raise ValueError(f"{name} needs a folder of frames, and SOURCE is a video; leave {name} out.")
            items, sources = datasets.video(source, every), Video(source, every)
        else:
            items = datasets.frames(source, labels)
            sources = how.own.sources(items, [items.path(i) for i in range(len(items))])
        _bag_images(items, sources, how, output, as_json)


class Extraction(NamedTuple):
    """The options about features."""

    kind: Kind | None
    words: int | None
    patch: int | None
    step: int | None
    sections: str | None
    codebook: Path | None
    max_side: int | None
    seed: int
    strict: bool
    own: Own = Own()

    def check(self) -> None:
        """Raise about options that exclude each other, before any work."""
        from countinggrids.core.geometry import as_shape

        if self.sections is not None:
            as_shape(common.shape(self.sections, "sections"), "sections", 2)
        decided = {"features": self.kind, "words": self.words, "patch": self.patch, "step": self.step}
        decided |= {"max-side": self.max_side}
        given = [f"--{name}" for name, value in decided.items() if value is not None]
        if self.codebook is not None and given:
            raise ValueError(f"{', '.join(given)} cannot be used with --codebook, which sets the same; leave one out.")
        self.own.check(self.kind, self.codebook, self.step)
        if self.patch is not None and self.own.descriptors is not None:
            raise ValueError(f"--patch={self.patch} needs images, and --descriptors has arrays; leave --patch out.")
        if self.patch is not None and self.kind in (Kind.colors, Kind.labels):
            raise ValueError(
                f"--patch={self.patch} needs --features=sift or textons, not {self.kind}; leave --patch out."
            )

    def wants_labels(self) -> bool:
        from countinggrids.features import LabelMaps

        return isinstance(self.steps()[0], LabelMaps)

    def steps(self) -> list[Any]:
        """Return the extractors: those of the codebook, or new ones that are not fitted."""
        from countinggrids.features import Colors, DenseSIFT, LabelMaps, Textons

        how: dict[str, Any] = {"on_error": "raise" if self.strict else "skip"}
        if self.codebook is not None:
            steps = known_steps(self.codebook, "images")
            _check_sources(steps[0], self.own.descriptors, self.codebook)
            return [_with(steps[0], **how), *steps[1:]]
        how["max_side"] = None if self.max_side == 0 else self.max_side or (512 if self.own.onnx is None else 448)
        places: dict[str, Any] = {"patch": self.patch, "step": self.step}
        places = {name: value for name, value in places.items() if value is not None}
        if self.own.descriptors is not None or self.own.onnx is not None:
            return self.own.steps(self.kind, self.words, self.seed, how | places)
        if self.kind is Kind.colors:
            return [Colors(self.words or 64, **{"step": 8} | places, random_state=self.seed, **how)]
        if self.kind is Kind.textons:
            return [Textons(self.words or 200, **places, random_state=self.seed, **how)]
        if self.kind is Kind.labels:
            return [LabelMaps(self.words, **places, **how)]
        return [DenseSIFT(**places, **how), self.own.codebook(self.words, self.seed)]


def _bag_images(items: "Items", sources: Iterable[Any], how: Extraction, output: Path, as_json: bool) -> None:
    collection = bag_images(items, sources, how)
    finish(collection, output, [reason for _, reason in collection.skipped], as_json)


def bag_images(items: "Items", sources: Iterable[Any], how: Extraction) -> "Collection":
    """Learn features unless they are known, and count them, with progress."""
    from sklearn.pipeline import make_pipeline

    from countinggrids.data.collection import Collection

    steps = how.steps()
    sections = (1, 1) if how.sections is None else common.shape(how.sections, "sections")
    if how.codebook is None:
        with progress.count_bar("learning features") as callback:
            _with(steps[0], callback=callback)
            make_pipeline(*steps).fit(how.own.learned_from(items, sources))
    elif how.sections is None:
        sections = Collection.load(how.codebook).sections
    with progress.count_bar("counting features") as callback:
        _with(steps[0], callback=callback)
        return Collection.from_images(items, steps, sections, sources)


def _with(step: Any, **options: Any) -> Any:
    """Set those of the options that a step has."""
    return step.set_params(**{name: value for name, value in options.items() if name in step.get_params(deep=False)})


def _check_sources(first: Any, descriptors: Path | None, codebook: Path) -> None:
    """Raise if the extractors of a collection take descriptors and there are none, or the other way round."""
    from countinggrids.features import Channels, Codebook

    takes_descriptors = isinstance(first, Channels | Codebook)
    if takes_descriptors and descriptors is None:
        raise ValueError(
            f"--codebook={codebook} was made from descriptors; add --descriptors with those of the images."
        )
    if descriptors is not None and not takes_descriptors:
        raise ValueError(f"--codebook={codebook} was made from images; leave --descriptors out.")


def known_steps(codebook: Path, source: str) -> list[Any]:
    """Return the extractors of a collection that was made from words or images."""
    from countinggrids.data.collection import Collection
    from countinggrids.features import Words

    steps = Collection.load(codebook).steps
    if not steps:
        raise ValueError(f"--codebook={codebook} has no extractors; use a collection that `bag` wrote.")
    found = "words" if isinstance(steps[0], Words) else "images"
    if found != source:
        raise ValueError(f"--codebook={codebook} was made from {found}; use a collection made from {source}.")
    return steps


def finish(collection: "Collection", output: Path, skipped: list[str], as_json: bool) -> None:
    """Write the collection, log what was skipped, and print a description."""
    collection.save(output)
    for reason in skipped[:10]:
        common.log(f"skipped: {reason}")
    if skipped:
        common.log(f"{len(skipped)} skipped, {len(collection)} bagged; use --strict to make these errors")
    common.print_facts(facts(collection) | {"skipped": len(skipped), "collection": str(output)}, as_json)


def facts(collection: "Collection") -> dict[str, Any]:
    """Return a description of a collection."""
    known = {
        "bags": len(collection),
        "features": len(collection.vocabulary),
        "kind": collection.vocabulary.kind,
        "sections": list(collection.sections),
    }
    return known | tokens_of(collection.counts) | {"item_columns": list(collection.items.columns)}


def tokens_of(counts: Any) -> dict[str, Any]:
    """Return the mean number of tokens, and the number of empty bags."""
    sums = counts.sum(axis=1)
    return {
        "tokens_per_bag": round(float(sums.sum()) / max(len(sums), 1), 1),
        "empty_bags": int((sums == 0).sum()),
    }
