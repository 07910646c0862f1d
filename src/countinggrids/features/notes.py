"""What was observed while a file was read."""

from collections.abc import Callable
from typing import Any

from countinggrids.features.stream import BadItemError

N_EXAMPLES = 5
OnError = str | Callable[[BadItemError], None]


def handler_of(on_error: OnError) -> Callable[[BadItemError], None]:
    """Return the function that handles errors.

    Parameters
    ----------
    on_error : {"raise", "skip"} or callable
        What to do about an error; a callable is called with it.

    Returns
    -------
    handle : callable
        Function of an error.
    """
    handlers = {"raise": _raise, "skip": _skip}
    if callable(on_error):
        return on_error
    if on_error not in handlers:
        raise ValueError(f"on_error={on_error!r} must be 'raise', 'skip' or a callable; use for instance 'skip'.")
    return handlers[on_error]


def _raise(error: BadItemError) -> None:
    raise error


def _skip(error: BadItemError) -> None:
    pass


class Examples:
    """A counter that keeps the first occurrences."""

    def __init__(self) -> None:
        self.n = 0
        self.first: list[Any] = []

    def add(self, example: Any) -> None:
        """Count an occurrence, and keep it if it is among the first."""
        self.n += 1
        if len(self.first) < N_EXAMPLES:
            self.first.append(example)

    def facts(self) -> dict[str, Any]:
        """Return the number and the examples as plain data."""
        return {"n": self.n, "examples": self.first}


class Notes:
    """Observations during one pass over a file.

    Parameters
    ----------
    on_error : {"raise", "skip"} or callable, default="skip"
        What to do about a part that cannot be read; a callable is called with the error.
    """

    def __init__(self, on_error: OnError = "skip"):
        self._handle = handler_of(on_error)
        self.n_rows = self.n_blank = self.n_zeros = 0
        self.ragged_rows, self.stray_quotes, self.unreadable = Examples(), Examples(), Examples()

    def add_error(self, error: BadItemError) -> None:
        """Count a part that cannot be read, and handle the error."""
        self.unreadable.add(str(error))
        self._handle(error)

    def facts(self) -> dict[str, Any]:
        """Return the observations as plain data."""
        kinds = {"ragged_rows": self.ragged_rows, "stray_quotes": self.stray_quotes, "unreadable": self.unreadable}
        counts = {"blank_lines": self.n_blank, "zero_bytes": self.n_zeros}
        return (
            {"rows": self.n_rows}
            | {name: n for name, n in counts.items() if n}
            | {name: found.facts() for name, found in kinds.items() if found.n}
        )
