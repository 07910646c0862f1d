"""Projections of descriptors before they are clustered: unit length, principal components, whitening."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SMALLEST = 1e-6
"""Added to variances, as a fraction of the largest, so that whitening does not amplify noise."""


class Projection(NamedTuple):
    """How descriptors are brought to the space of the words.

    Attributes
    ----------
    is_cosine : bool
        Whether vectors are scaled to length 1, before the projection and after it.
    mean : ndarray of shape (n_channels,) or None
        Mean, which is subtracted; None projects nothing.
    axes : ndarray of shape (n_channels, n_components) or None
        Principal axes, divided by the standard deviations if they are whitened.
    """

    is_cosine: bool
    mean: Array | None
    axes: Array | None

    def apply(self, vectors: Array) -> NDArray[np.float32]:
        """Project vectors, (n_vectors, n_channels)."""
        vectors = vectors.astype(np.float32, copy=False)
        if self.is_cosine:
            vectors = of_unit_length(vectors)
        if self.axes is None or self.mean is None:
            return vectors
        projected = (vectors - self.mean) @ self.axes
        return of_unit_length(projected) if self.is_cosine else projected


def fit_projection(vectors: Array, is_cosine: bool, n_components: int | None, whiten: bool) -> Projection:
    """Compute the projection of a sample of descriptors.

    Parameters
    ----------
    vectors : ndarray of shape (n_vectors, n_channels)
        The sample.
    is_cosine : bool
        Whether vectors are scaled to length 1.
    n_components : int or None
        Number of principal components; None keeps all.
    whiten : bool
        Whether components are divided by their standard deviations.

    Returns
    -------
    projection : Projection
        The projection.
    """
    if n_components is None and not whiten:
        return Projection(is_cosine, None, None)
    if n_components is not None and n_components > min(vectors.shape):
        raise ValueError(
            f"pca={n_components} must be at most the {vectors.shape[1]} channels and the {vectors.shape[0]} sampled "
            "descriptors; use fewer components."
        )
    values = Projection(is_cosine, None, None).apply(vectors).astype(np.float64)
    mean = values.mean(axis=0)
    centered = values - mean
    variances, axes = np.linalg.eigh(centered.T @ centered / len(values))
    kept = np.argsort(-variances, kind="stable")[:n_components]
    axes, variances = axes[:, kept], np.maximum(variances[kept], 0)
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)  # one sign everywhere
    if whiten:
        axes = axes / np.sqrt(variances + SMALLEST * max(variances.max(), SMALLEST))
    return Projection(is_cosine, mean.astype(np.float32), axes.astype(np.float32))


def of_unit_length(vectors: Array) -> NDArray[np.float32]:
    """Scale vectors to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
