"""The backend of torch: the same code on tensors of a processor or a graphics card.

The grid stays on the device while it is learned. Bags are moved there a block at a time, so that blocks bound the
memory they take.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any

from countinggrids.backends.threads import ThreadsBackend
from countinggrids.core import arrays, em
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Bags
from countinggrids.data.table import Table
from countinggrids.kernels.counts import DenseCounts
from countinggrids.kernels.threads import default


class TorchBackend(ThreadsBackend):
    """Work on torch tensors, one piece after the other: torch has threads of its own.

    Parameters
    ----------
    device : str
        The device, as torch names it.
    dtype : str
        Precision of the model.
    """

    def __init__(self, device: str, dtype: str):
        check_device(device, dtype)
        blocks = default().block_entries
        super().__init__(replace(default(), n_threads=1, piece_entries=blocks))
        self.device = device

    def prepare(self, table: Table, weights: Any, n_features: int, geometry: Geometry) -> Iterable[Bags]:
        """Cut bags into chunks that are multiplied dense; those that fit into one block are kept on the device."""
        chunks = super().prepare(table, weights, n_features, geometry)
        if not isinstance(chunks, list):
            return chunks
        is_small = sum(prod(bags.painted.shape) for bags in chunks) <= self.pool.block_entries
        return [self._moved(bags) for bags in chunks] if is_small else chunks

    def iter_chunks(self, table: Table, weights: Any, n_features: int, geometry: Geometry) -> Iterable[Bags]:
        """Cut bags into chunks that are multiplied dense."""
        return _DenseChunks(super().iter_chunks(table, weights, n_features, geometry))

    def place(self, grid: em.Grid) -> em.Grid:
        """Move the parameters to the device."""
        return em.Grid(self._on_device(grid.pi), self._on_device(grid.log_prior), grid.extra)

    def _on_device(self, values: arrays.Array) -> Any:
        import array_api_compat.torch as xp

        example = xp.empty(0, dtype=getattr(xp, values.dtype.name), device=self.device)
        return arrays.like(example, values)

    def _moved(self, bags: Bags) -> Bags:
        matched, painted = (self._moved_counts(counts) for counts in (bags.matched, bags.painted))
        return Bags(matched, painted, bags.weights)

    def _moved_counts(self, counts: Any) -> DenseCounts:
        return _with_matrix(counts, self._on_device(_array(counts.matrix)))


class _DenseChunks:
    """Chunks that are read again in every iteration, multiplied dense: the compiled loops know only NumPy arrays."""

    def __init__(self, chunks: Iterable[Bags]):
        self.chunks = chunks

    def __iter__(self) -> Any:
        return map(_dense, self.chunks)


def _dense(bags: Bags) -> Bags:
    return Bags(_as_dense(bags.matched), _as_dense(bags.painted), bags.weights)


def _as_dense(counts: Any) -> DenseCounts:
    return _with_matrix(counts, counts.matrix)


def _with_matrix(counts: Any, matrix: Any) -> DenseCounts:
    return DenseCounts(matrix, counts.n_features, counts.offsets, counts.grid, counts.tuning)


def _array(matrix: Any) -> arrays.Array:
    return matrix if arrays.is_numpy(matrix) else matrix.toarray()


def check_device(device: Any, dtype: str) -> None:
    """Raise unless a model can compute on a device; None is NumPy, and always accepted."""
    if device is None:
        return
    if not isinstance(device, str):
        raise ValueError(f"device={device!r} must be None for NumPy, or the name of a torch device; use device=None.")
    if device.startswith(arrays.WITHOUT_FLOAT64) and dtype == "float64":
        raise ValueError(f"device={device!r} does not support dtype='float64'; use dtype='float32' or another device.")
    try:
        import array_api_compat  # noqa: F401
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs torch and array-api-compat; "
            'pip install "countinggrids[torch]", or use device=None.'
        ) from error
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device={device!r} must be one that torch finds here: {', '.join(map(repr, available_devices()))}; "
            "use one of these, or device=None for NumPy."
        ) from error


def available_devices() -> list[str]:
    """List the devices that torch finds here."""
    import torch

    cards = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return ["cpu", *cards, *(["mps"] if torch.backends.mps.is_available() else [])]
