"""Another place to work: torch, on the processor or on a graphics card.

The grid stays on the device while it is learnt. Bags go there a block at a time, so that blocks bound the memory they
take; what comes back is NumPy's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from countinggrids import arrays, engine
from countinggrids.em import Bags
from countinggrids.products import Counts, DenseCounts


@dataclass(frozen=True)
class Device(engine.Threads):
    """Works on torch arrays, one piece after the other: torch has threads of its own.

    Parameters
    ----------
    name : the device, as torch calls it
    """

    name: str = "cpu"

    def place(self, values: arrays.Array) -> Any:
        """Put an array on the device."""
        import array_api_compat.torch as xp

        return arrays.like(xp.empty(0, dtype=getattr(xp, values.dtype.name), device=self.name), values)

    def ready(self, bags: Bags) -> Bags:
        """Let bags be multiplied dense, a block at a time: the compiled kernels know only NumPy's arrays."""
        return bags._replace(matched=_dense(bags.matched), painted=_dense(bags.painted))

    def hold(self, shares: Iterable[Bags]) -> Iterable[Bags]:
        """Bring shares that are gone through many times to the device, if all of them fit into one block."""
        if not isinstance(shares, list) or sum(prod(share.painted.shape) for share in shares) > self.block_entries:
            return shares
        return [self._held(share) for share in shares]

    def _held(self, share: Bags) -> Bags:
        painted = _dense(share.painted, self)
        if share.matched.matrix is share.painted.matrix:
            return share._replace(matched=painted, painted=painted)
        return share._replace(matched=_dense(share.matched, self), painted=painted)


def _dense(counts: Counts, where: Device | None = None) -> DenseCounts:
    """Give counts to be multiplied dense; as they are in memory, or put on a device."""
    matrix = counts.matrix
    if where is not None:
        matrix = where.place(matrix if arrays.is_numpy(matrix) else matrix.toarray())
    return DenseCounts(matrix, counts.n_features, counts.offsets, counts.grid)


def runner(device: str | None, dtype: str) -> engine.Threads:
    """Make the engine of a model: threads on NumPy's arrays, or a device that torch sees."""
    here = engine.default()
    if device is None:
        return here
    check(device, dtype)
    return Device(1, here.block_entries, here.block_entries, device)


def check(device: Any, dtype: str) -> None:
    """Raise unless a model can compute there."""
    if device is None:
        return
    if not isinstance(device, str):
        raise ValueError(
            f"device is {device!r}; wanted None for NumPy, or the name of a torch device; give for instance device=None"
        )
    if device.startswith(arrays.WITHOUT_FLOAT64) and dtype == "float64":
        raise ValueError(
            f"device {device!r} knows no float64; wanted dtype 'float32' there; give it, or another device"
        )
    try:
        import array_api_compat  # noqa: F401
        import torch
    except ImportError as error:
        raise ImportError(
            f"device is {device!r}, which needs torch and array-api-compat; "
            'pip install "countinggrids[torch]" brings them; device=None does without'
        ) from error
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device is {device!r}, and torch sees {', '.join(map(repr, seen()))} here; "
            "wanted one of these; give it, or device=None for NumPy"
        ) from error


def seen() -> list[str]:
    """List the devices that torch sees here."""
    import torch

    cards = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return ["cpu", *cards, *(["mps"] if torch.backends.mps.is_available() else [])]
