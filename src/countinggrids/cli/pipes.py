"""Standard streams whose reader may close them, as `| head -1` does."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CLOSED = 141
"""Exit code for a closed stdout: what shells report of a program that SIGPIPE ended."""


class ClosableStream:
    """A stream that goes on writing, to nowhere, when its reader closes it.

    Parameters
    ----------
    stream : text stream
        Where to write.
    is_wanted : bool
        Whether the program exits, with `CLOSED`, when the reader closes the stream.
    """

    def __init__(self, stream: Any, is_wanted: bool):
        self._stream, self._is_wanted = stream, is_wanted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._until_closed():
            return int(self._stream.write(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with self._until_closed():
            self._stream.flush()

    @contextmanager
    def _until_closed(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._drop()
            if not self._is_wanted:
                return
            if not isinstance(error, BrokenPipeError):
                print(f"Error: stdout could not be written ({error.strerror}).", file=sys.stderr)
            raise SystemExit(CLOSED if isinstance(error, BrokenPipeError) else 2) from None

    def _drop(self) -> None:
        """Redirect the stream to nowhere; Python would otherwise write again at its end, and log an error."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


@contextmanager
def closable() -> Iterator[None]:
    """Exit with `CLOSED` when the reader of stdout closes it; go on when that of stderr does."""
    before = sys.stdout, sys.stderr
    if None in before:  # closed from the start, as by `>&-`
        yield
        return
    out, err = ClosableStream(sys.stdout, True), ClosableStream(sys.stderr, False)
    sys.stdout, sys.stderr = out, err
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        err.flush()
        out.flush()
