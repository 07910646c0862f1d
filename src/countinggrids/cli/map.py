"""`countinggrids map`: from a table, a file or a folder to a map in the browser, in one command."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import countinggrids
from countinggrids.cli import bag, bag_text, common, progress

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection

MAX_WORDS = 10_000
WINDOW, LARGEST_SIDE = 5, 32
"""Cells along each axis of the window, and of the grid at most, so that thousands of texts take seconds."""
COMPONENTIAL_WINDOW = 3
"""Cells along each axis of the window of a word."""
MAX_ITER, BATCH_SIZE = 40, 2500
"""Iterations of the fit, and bags of each while the layout forms."""


def draw_map(
    source: Annotated[
        Path,
        typer.Argument(help="A table (.csv, .tsv, .jsonl, .parquet), a text per line, or a folder of texts or photos."),
    ],
    text: Annotated[str | None, bag_text.column_option("text")] = None,
    label: Annotated[str | None, bag_text.column_option("label")] = None,
    time: Annotated[str | None, bag_text.column_option("date or time")] = None,
    title: Annotated[str | None, bag_text.column_option("title")] = None,
    link: Annotated[str | None, bag_text.column_option("link")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the page; SOURCE.html here by default.")
    ] = None,
    model_file: Annotated[Path | None, typer.Option("--model", help="Where to keep the model.")] = None,
    collection_file: Annotated[Path | None, typer.Option("--collection", help="Where to keep the collection.")] = None,
    several: Annotated[
        bool | None,
        typer.Option(
            "--several-places/--one-place",
            help="Whether the words of an item may lie in several places; chosen by held-out words by default.",
        ),
    ] = None,
    max_words: Annotated[int, typer.Option(min=1, help="Number of words, the most frequent ones.")] = MAX_WORDS,
    largest: Annotated[float, typer.Option(help="Largest size of the page in megabytes.")] = 25,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    seed: common.Seed = 0,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Read, count, fit and draw: from a table or a folder to a page with the map, in one command."""
    with common.errors():
        page = Path(f"{source.stem or 'map'}.html") if output is None else output
        _check(source, page, model_file, collection_file, force)
        columns = {"text": text, "title": title, "link": link, "label": label, "time": time}
        collection = _read(source, columns, max_words, seed)
        model = fit_map(collection, seed, several)
        size = _draw(model, collection, page, source.stem, largest)
        for path, kept in ((model_file, model), (collection_file, collection)):
            if path is not None:
                kept.save(path)
    facts = {"items": len(collection), "features": len(collection.vocabulary), "megabytes": round(size / 1e6, 2)}
    common.print_facts(facts | {"page": str(page)}, as_json)
    if open_page:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _check(source: Path, page: Path, model_file: Path | None, collection_file: Path | None, force: bool) -> None:
    """Raise, before any work, about files that cannot be read or written."""
    if not source.exists():
        raise ValueError(f"SOURCE={source} does not exist; expected a file or a folder; check the path.")
    outputs = [("--output", page), ("--model", model_file), ("--collection", collection_file)]
    for _, path in outputs:
        if path is not None:
            common.check_output(path, force)
            common.check_spares(source, path)
    common.check_apart([("SOURCE", source)], outputs)


def _read(source: Path, columns: dict[str, str | None], max_words: int, seed: int) -> "Collection":
    if source.is_dir() and _has_images(source):
        given = [f"--{name}" for name, value in columns.items() if value is not None]
        if given:
            raise ValueError(f"{', '.join(given)} needs a table, and {source} is a folder of photos; leave it out.")
        from countinggrids import datasets

        items = datasets.folder(source)
        how = bag.Extraction(None, None, None, None, None, None, None, seed, False)
        return bag.bag_images(items, [items.root / name for name in items["path"]], how)
    return _read_texts(source, columns, max_words)


def _has_images(folder: Path) -> bool:
    """Return whether most files of a folder are images."""
    from countinggrids.features.image_files import is_image_path

    are_images = [is_image_path(path) for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]
    return sum(are_images) * 2 > len(are_images)


def _read_texts(source: Path, columns: dict[str, str | None], max_words: int) -> "Collection":
    from countinggrids.data.collection import Collection
    from countinggrids.features.text import Columns, read_documents
    from countinggrids.features.text_report import lines_of

    skipped: list[str] = []
    names = Columns(*(columns[name] for name in ("text", "title", "link", "label", "time")))
    documents = read_documents([source], names, lambda error: skipped.append(str(error)))
    n_texts = sum(1 for _ in documents)
    if not n_texts:
        raise ValueError(f"SOURCE={source} has no texts; expected at least one; check the file, or --text for a table.")
    with progress.count_bar("counting words") as callback:
        collection = Collection.for_map(documents, n_texts, max_words, lambda n, _: callback(n, n_texts))
    for line in [*lines_of(collection.report), *(f"skipped: {reason}" for reason in list(dict.fromkeys(skipped))[:10])]:
        common.log(line)
    n_words = len(collection.vocabulary)
    common.log(f"{n_words} words counted" + (", the most frequent; see --max-words" if n_words == max_words else ""))
    return collection


def model_for(collection: "Collection", seed: int, several: bool = False) -> tuple[Any, str]:
    """Choose a model that is fitted within seconds, and say why.

    Parameters
    ----------
    collection : Collection
        The bags.
    seed : int
        Seed of the fit.
    several : bool, default=False
        Whether every word of an item has its own place (componential counting grid).

    Returns
    -------
    model : estimator
        A model that is not fitted.
    reason : str
        What was chosen and why, for the log.
    """
    from countinggrids.core.geometry import suggest

    n_features = len(collection.vocabulary)
    window = (WINDOW, WINDOW)
    shape, _ = suggest(len(collection), n_features, (1, 1), window)
    grid = tuple(min(side, LARGEST_SIDE) for side in shape)
    if several and collection.vocabulary.kind != "words":
        raise ValueError("--several-places is for texts; leave it out for photos.")
    if several:
        small = (COMPONENTIAL_WINDOW, COMPONENTIAL_WINDOW)
        model = countinggrids.ComponentialGrid(grid, small, max_iter=MAX_ITER, random_state=seed)
        shapes = f"{grid[0]}x{grid[1]} cells, windows of {small[0]}x{small[1]}"
        return model, f"componential counting grid (a place for each word): {shapes}, for {len(collection)} items"
    batch = BATCH_SIZE if len(collection) > 2 * BATCH_SIZE else None
    model = countinggrids.CountingGrid(grid, window, max_iter=MAX_ITER, batch_size=batch, random_state=seed)
    shapes = f"{grid[0]}x{grid[1]} cells, windows of {WINDOW}x{WINDOW}"
    return model, f"counting grid (one place for each item): {shapes}, for {len(collection)} items"


def fit_map(collection: "Collection", seed: int, several: bool | None = None) -> Any:
    """Fit a model to a collection, with an estimate of the time before and progress meanwhile.

    Parameters
    ----------
    collection : Collection
        The bags.
    seed : int
        Seed of the fit.
    several : bool, default=None
        Whether every word of an item has its own place; None chooses by held-out words.

    Returns
    -------
    model : estimator
        The fitted model.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of iterations is chosen for speed
        several = _choose(collection, seed) if several is None else several
        model, reason = model_for(collection, seed, several)
        common.log(reason)
        with progress.verbose(model):
            return model.fit(collection)


def _choose(collection: "Collection", seed: int) -> bool:
    """Choose whether words have places of their own, and log why."""
    from countinggrids.meta.model_choice import choose_model

    with progress.spinner("comparing one place for each item with one for each word"):
        choice = choose_model(collection, seed)
    chosen, other = ("word", "--one-place") if choice.is_componential else ("item", "--several-places")
    hint = f"; {other} for the other" if collection.vocabulary.kind == "words" else ""
    common.log(f"a place for each {chosen}: {choice.reason}{hint}")
    return choice.is_componential


def _draw(model: Any, collection: "Collection", page: Path, title: str, largest: float) -> int:
    from countinggrids.explore import ItemMap
    from countinggrids.explore import export as write_page

    with progress.count_bar("locating items") as callback:
        item_map = ItemMap(model, collection, title, callback)
    with progress.spinner("drawing the map"):
        return write_page(item_map, page, largest)
