"""Options of `bag` about descriptors that are not computed here, and about how descriptors become words."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from countinggrids.data.items import Items


class Kind(StrEnum):
    """Features of images."""

    sift = "sift"
    colors = "colors"
    textons = "textons"
    labels = "labels"
    channels = "channels"


class Metric(StrEnum):
    """Distances between descriptors."""

    euclidean = "euclidean"
    cosine = "cosine"


class WordsFrom(StrEnum):
    """Images that words are learned from."""

    train = "train"
    all = "all"


DescriptorsFolder = Annotated[
    Path | None,
    typer.Option("--descriptors", help="Folder of .npy files, (rows, columns, channels): DIR/a/b.npy for a/b.jpg."),
]
Onnx = Annotated[Path | None, typer.Option(help="A network in an ONNX file whose tokens are the descriptors.")]
Tensor = Annotated[str | None, typer.Option("--tensor", help="Output of the network with the tokens.")]
Skip = Annotated[int | None, typer.Option(min=0, help="Tokens before those of the patches; 1 by default.")]
MetricOption = Annotated[Metric | None, typer.Option("--metric", help="Distance between descriptors.")]
Pca = Annotated[
    int | None, typer.Option(min=1, help="Principal components of the descriptors; by default all channels.")
]
Whiten = Annotated[bool, typer.Option("--whiten", help="Scale the components to variance 1.")]
Soft = Annotated[int | None, typer.Option(min=1, help="Nearest words that a descriptor is counted for; 1 by default.")]
Learned = Annotated[
    WordsFrom | None,
    typer.Option("--words-from", help="Images that words are learned from; train where the items have a split."),
]


class Own(NamedTuple):
    """The options about descriptors that are not computed here, and about how any descriptors become words."""

    descriptors: Path | None = None
    onnx: Path | None = None
    tensor: str | None = None
    skip: int | None = None
    metric: Metric | None = None
    pca: int | None = None
    whiten: bool = False
    soft: int | None = None
    words_from: WordsFrom | None = None

    def check(self, kind: Kind | None, codebook: Path | None, step: int | None) -> None:
        """Raise about options that exclude each other or lack another one, before any work."""
        has_own = self.descriptors is not None or self.onnx is not None
        is_sift = kind in (None, Kind.sift)
        if self.descriptors is not None and self.onnx is not None:
            raise ValueError("--descriptors and --onnx exclude each other; leave one out.")
        if has_own and not (kind is None or kind is Kind.channels):
            raise ValueError(f"--features={kind} excludes --descriptors and --onnx; leave it out, or use channels.")
        if kind is Kind.channels and not has_own:
            raise ValueError("--features=channels needs --descriptors or --onnx; add one.")
        if has_own and step is not None:
            raise ValueError(f"--step={step} needs descriptors that are computed here; leave --step out.")
        if self.onnx is None and (self.tensor is not None or self.skip is not None):
            raise ValueError("--tensor and --skip need --onnx; add the file of the network.")
        quantized = {"--metric": self.metric, "--pca": self.pca, "--whiten": self.whiten or None, "--soft": self.soft}
        given = [name for name, value in quantized.items() if value is not None]
        if given and not is_sift:
            raise ValueError(f"{', '.join(given)} need words, and --features={kind} has none; leave them out.")
        given += ["--words-from"] if self.words_from is not None else []
        given += ["--onnx"] if self.onnx is not None else []
        if codebook is not None and given:
            raise ValueError(f"{', '.join(given)} cannot be used with --codebook, which sets the same; leave one out.")

    def sources(self, items: "Items", images: list[Path]) -> Any:
        """Return the descriptors of the items, if there are any, or else the images."""
        from countinggrids.features import Descriptors

        return images if self.descriptors is None else Descriptors.of_images(items["path"], self.descriptors)

    def codebook(self, n_words: int | None, seed: int) -> Any:
        """Return a new codebook."""
        from countinggrids.features import Codebook

        options: dict[str, Any] = {"metric": self.metric and self.metric.value, "pca": self.pca, "soft": self.soft}
        given = {name: value for name, value in options.items() if value is not None}
        return Codebook(n_words or 200, random_state=seed, whiten=self.whiten, **given)

    def steps(self, kind: Kind | None, n_words: int | None, seed: int, options: dict[str, Any]) -> list[Any]:
        """Return the extractors of own descriptors, not fitted."""
        from countinggrids.features import Channels, OnnxTokens

        last = Channels() if kind is Kind.channels else self.codebook(n_words, seed)
        if self.onnx is None:
            return [last]
        known: dict[str, Any] = {"output": self.tensor, "skip": self.skip}
        return [OnnxTokens(self.onnx, **{name: v for name, v in known.items() if v is not None}, **options), last]

    def learned_from(self, items: "Items", sources: Any) -> Any:
        """Return the sources that words are learned from: those of the training split, if there is one."""
        from countinggrids.features import Descriptors

        is_train = items["split"] == "train" if "split" in items else []
        if self.words_from is WordsFrom.train and not any(is_train):
            raise ValueError(
                "--words-from=train needs items with a split, and none is known; use a layout with a split, such as "
                "--layout scenes15 on folders train and test, or --words-from=all."
            )
        if self.words_from is WordsFrom.all or not any(is_train):
            return sources
        rows = [i for i, is_one in enumerate(is_train) if is_one]
        return sources.take(rows) if isinstance(sources, Descriptors) else [sources[i] for i in rows]
