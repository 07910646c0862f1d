"""Parquet tables within a limit: with dictionaries and run lengths a small file can decode to any number of bytes."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countinggrids.features.limits import BYTES_VARIABLE, TooLargeError, max_bytes
from countinggrids.features.notes import Notes

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

BATCH_ROWS, BATCH_BYTES = 1024, 2**26
"""Largest number of rows, and of bytes of a column, that are decoded at a time."""
VALUE_BYTES = 64
"""Bytes that a value takes in Python besides its characters."""
LARGEST_RATIO = 20
"""Bytes of texts for each byte of a file that exceeds the limit by itself; compressors reach about 5."""


class Parquet:
    """A Parquet table.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path):
        self.path = path
        self._names = self._guarded(lambda parquet: parquet.ParquetFile(path).schema_arrow.names)

    def find_names(self, wanted: Iterable[str]) -> list[str]:
        """Return the columns."""
        return list(self._names)

    def rows(self, notes: Notes, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Iterate over rows, with the given columns only.

        Raises
        ------
        TooLargeError
            If they declare or decode to more bytes than `max_bytes` allows, or 20 times the size of a large file.
        """
        wanted = list(dict.fromkeys(columns))
        file = self._guarded(lambda parquet: parquet.ParquetFile(self.path))
        self._check_columns(file, wanted)
        n_bytes, limit = 0, max(max_bytes(), LARGEST_RATIO * self.path.stat().st_size)
        self._check_size(_declared_bytes(file, wanted), limit)
        for group in range(file.metadata.num_row_groups):
            n_rows = self._rows_at_a_time(group, wanted)
            for batch in self._batches(file, group, n_rows, wanted):
                n_bytes += _decoded_bytes(batch)
                self._check_size(n_bytes, limit)
                yield from self._guarded(lambda _, batch=batch: batch.to_pylist())

    def facts(self) -> dict[str, Any]:
        """Return no facts: the format leaves no choice."""
        return {}

    def _check_columns(self, file: "ParquetFile", wanted: list[str]) -> None:
        from pyarrow.types import is_nested

        for name in wanted:
            kind = file.schema_arrow.field(name).type
            if is_nested(kind):
                raise ValueError(f"{self.path}, column {name!r}, is {kind}; expected texts; use another column.")

    def _check_size(self, n_bytes: int, limit: int) -> None:
        if n_bytes > limit:
            raise TooLargeError(
                f"{self.path} takes {n_bytes:,} bytes or more when it is decoded, and the limit is {limit:,}; set the "
                f"environment variable {BYTES_VARIABLE} to read it, or split it."
            )

    def _rows_at_a_time(self, group: int, wanted: list[str]) -> int:
        """Return a number of rows of which none is longer than the dictionaries of its columns allow."""

        def first_row(parquet: Any) -> Any:
            file = parquet.ParquetFile(self.path, read_dictionary=wanted)
            return next(file.iter_batches(1, [group], wanted), None)

        first = self._guarded(first_row)
        longest = max((column.nbytes for column in first.columns), default=0) if first is not None else 0
        return max(1, min(BATCH_ROWS, BATCH_BYTES // max(longest, 1)))

    def _batches(self, file: "ParquetFile", group: int, n_rows: int, wanted: list[str]) -> "Iterator[RecordBatch]":
        batches = self._guarded(lambda _: file.iter_batches(n_rows, [group], wanted))
        while (batch := self._guarded(lambda _: next(batches, None))) is not None:
            yield batch

    def _guarded(self, read: Callable[..., Any]) -> Any:
        """Read with pyarrow, and raise its errors with the name of the file."""
        try:
            from pyarrow import ArrowException, parquet
        except ImportError as error:
            raise ImportError(f"{self.path} needs pyarrow; install it, or convert the table to CSV.") from error
        try:
            return read(parquet)
        except (ArrowException, OSError, ValueError, ArithmeticError, MemoryError) as error:
            raise ValueError(
                f"{self.path} cannot be read ({error}); expected a Parquet table; write it again."
            ) from error


def _declared_bytes(file: "ParquetFile", wanted: list[str]) -> int:
    """Return the bytes that columns take by the metadata, or would take if every value were empty."""
    metadata = file.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
    stored = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in wanted)
    return int(max(stored, sum(group.num_rows for group in groups) * VALUE_BYTES * len(wanted)))


def _decoded_bytes(batch: "RecordBatch") -> int:
    """Return the bytes that the rows of a batch take as Python objects, about."""
    from pyarrow.types import is_dictionary

    decoded = (column.dictionary_decode() if is_dictionary(column.type) else column for column in batch.columns)
    return int(sum(column.nbytes for column in decoded) + batch.num_rows * batch.num_columns * VALUE_BYTES)
