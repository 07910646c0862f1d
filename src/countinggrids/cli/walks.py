"""Two walks for `recognize`: frames and their numbers, true matches, the table and the film."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.data import container
from countinggrids.data.collection import Collection
from countinggrids.meta import true_matches
from countinggrids.plot import encode

Array = NDArray[Any]
NUMBER = re.compile(r"(\d{1,15})\D*$")


def load_pair(reference: Path, query: Path) -> tuple[Collection, Collection]:
    """Read two collections with the same features; raise if they cannot be compared."""
    first, second = Collection.load(reference), Collection.load(query)
    if first.fingerprint != second.fingerprint or first.sections != second.sections:
        raise ValueError(
            f"QUERY={query} must have the features and sections of REFERENCE={reference}; bag it with --codebook."
        )
    if len(first) < 2:
        raise ValueError(f"REFERENCE={reference} has {len(first)} frame but must have at least 2; bag the whole walk.")
    if not len(second):
        raise ValueError(f"QUERY={query} has no frames; bag at least one.")
    return first, second


def matches_of(first: Collection, second: Collection, truth: Path | None, tolerance: float) -> Array:
    """Return which reference frames are correct for each query, (queries, references)."""
    if truth is not None:
        return true_matches(read_truth(truth, len(second)), len(first), tolerance)
    here, there = frame_numbers(first, "REFERENCE"), frame_numbers(second, "QUERY")
    if here is None or there is None:
        if len(first) != len(second):
            raise ValueError(
                f"REFERENCE has {len(first)} frames and QUERY {len(second)}, and their files have no numbers; frames "
                "agree by number without --truth; pass --truth."
            )
        here = there = np.arange(len(first))
    # Frames of a walk may be numbered by tens; the tolerance counts frames.
    step = int(here[1] - here[0])
    matches = np.abs(there[:, None] - here) <= tolerance * step
    if not matches.any():
        raise ValueError(
            f"frames {there[0]} to {there[-1]} of QUERY agree by number with none of REFERENCE, {here[0]} to "
            f"{here[-1]}; pass --truth, or number the frames alike."
        )
    return matches


def frame_numbers(walk: Collection, name: str) -> Array | None:
    """Return the numbers in the names of the files of a walk, or None if there are none; raise about gaps."""
    if "path" not in walk.items:
        return None
    found = [NUMBER.search(Path(path).stem) for path in walk.items["path"]]
    if not all(found):
        return None
    numbers = np.array([int(each[1]) for each in found if each is not None], dtype=np.int64)
    steps = np.diff(numbers)
    if not len(steps):
        return numbers
    is_usual = steps == np.median(steps)
    if (steps <= 0).any() or is_usual.mean() <= 0.5:
        return None  # such as times, or several walks
    if not is_usual.all():
        row = int(np.flatnonzero(~is_usual)[0])
        raise ValueError(
            f"{name} has a gap: frame {numbers[row]} is followed by frame {numbers[row + 1]}, because frames are "
            "missing or could not be read; bag them again, or pass --truth."
        )
    return numbers


def read_truth(path: Path, n_queries: int) -> Array:
    """Read the number of the reference frame of each query, or raise."""
    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            rows = [line.split(",")[-1].strip() for line in path.read_text().splitlines() if line.strip()]
            rows = rows[1:] if rows and not _is_number(rows[0]) else rows
            values = np.array([float(row or "nan") for row in rows])
        values = np.asarray(values, dtype=np.float64)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(
            f"--truth={path} must be .npy or .csv with the number of a reference frame in the last column of each row "
            f"({error}); correct the file."
        ) from None
    if values.shape != (n_queries,):
        raise ValueError(
            f"--truth={path} has shape {values.shape} but QUERY has {n_queries} frames; give one row for each frame."
        )
    is_number = np.isnan(values) | ((values >= -1) & (values == np.floor(values)))
    if not is_number.all():
        row = int(np.flatnonzero(~is_number)[0])
        raise ValueError(
            f"--truth={path} has {values[row]:g} for frame {row}; expected the number of a reference frame, from 0, or "
            "-1 for none; correct the file."
        )
    return values


def write_table(
    path: Path, first: Collection, second: Collection, similarity: Array, posterior: Array, matches: Array
) -> None:
    """Write the match of each frame, alone and filtered."""
    known = posterior[:, : len(first)]
    alone, filtered = similarity.argmax(axis=1), known.argmax(axis=1)
    rows = []
    for i in range(len(second)):
        row: dict[str, Any] = {"frame": i, "alone": int(alone[i]), "filtered": int(filtered[i])}
        row |= {"probability": round(float(known[i, filtered[i]]), 6), "is_correct": bool(matches[i, filtered[i]])}
        if posterior.shape[1] > len(first):
            row["new_place"] = round(float(posterior[i, -1]), 6)
        rows.append(row)
    if path.suffix == ".json":
        container.write_text(path, json.dumps(rows))
        return
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    container.write_text(path, buffer.getvalue())


def check_film(path: Path, *walks: Collection) -> None:
    """Raise, before any work, if a film cannot be written, or a frame cannot be read."""
    encode.check(path)
    for walk in walks:
        for index in (0, len(walk) - 1):
            walk.thumbnail(index)


def write_film(path: Path, recognizer: Any, first: Collection, second: Collection, posterior: Array) -> None:
    """Write a film: each query, its match, and where the walk is on the map."""
    from countinggrids.plot.walk_film import WalkFilm

    WalkFilm(recognizer, first, second, posterior).write(path)


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True
