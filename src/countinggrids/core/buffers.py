"""Memory of large arrays that is used again.

An iteration allocates and drops a few arrays of the size of the grid. To get their memory from the system every time
costs as much as the arithmetic on them, because the system clears every page.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from threading import Lock
from typing import Any

import numpy as np

SMALLEST = 2**20
"""Bytes below which memory is allocated as usual."""


class _Buffers:
    """Free memory, kept while there are users."""

    def __init__(self) -> None:
        self.lock, self.free, self.n_users = Lock(), list[Any](), 0

    def take(self, n_bytes: int) -> Any:
        """Return memory that is free and of this size, or new memory."""
        with self.lock:
            for number, memory in enumerate(self.free):
                if memory.nbytes == n_bytes:
                    return self.free.pop(number)
            self.free.clear()  # of other sizes: another grid is learned now
        return np.empty(n_bytes, np.uint8).data

    def give(self, memory: Any) -> None:
        """Take memory back from an array that is gone."""
        with self.lock:
            if self.n_users:
                self.free.append(memory)


_buffers = _Buffers()


@contextmanager
def reused() -> Iterator[None]:
    """Keep the memory of large arrays inside the `with` block for others of their size."""
    with _buffers.lock:
        _buffers.n_users += 1
    try:
        yield
    finally:
        with _buffers.lock:
            _buffers.n_users -= 1
            if not _buffers.n_users:
                _buffers.free.clear()


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array that holds anything, like `numpy.empty`, in memory of an array that is gone if there is one."""
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < SMALLEST or not _buffers.n_users:
        return np.empty(shape, dtype)
    memory = _buffers.take(n_bytes)
    array = np.frombuffer(memory, dtype)
    # Views keep this array alive, and not the memory itself, because the memory is no array.
    weakref.finalize(array, _buffers.give, memory)
    return array.reshape(shape)
