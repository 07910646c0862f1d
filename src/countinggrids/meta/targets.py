"""What the frames of a walk are labeled with: places, frames of a reference walk, or poses."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

Array = NDArray[Any]


class Targets(NamedTuple):
    """The targets of a fit.

    Attributes
    ----------
    labels : ndarray of shape (n_frames,)
        Place of each frame; the numbers of the frames where there are poses, or nothing.
    poses : ndarray of shape (n_frames, n_coordinates) or None
        Pose of each frame.
    is_walk : bool
        Whether every frame is a place of its own.
    """

    labels: Array
    poses: Array | None
    is_walk: bool


def read_targets(y: Any, n_frames: int) -> Targets:
    """Read labels, poses or nothing, or raise.

    Parameters
    ----------
    y : None, array-like of shape (n_frames,) or (n_frames, n_coordinates)
        Places, poses, or None if every frame is a place.
    n_frames : int
        Number of frames.

    Returns
    -------
    targets : Targets
        Labels and poses.
    """
    if y is None:
        return Targets(np.arange(n_frames), None, True)
    if _num_samples(y) != n_frames:
        raise ValueError(
            f"y has shape ({_num_samples(y)},) but X has {n_frames} frames; give one place for each frame."
        )
    given = np.asarray(y)
    if given.ndim == 2 and given.shape[1] > 1:
        return Targets(np.arange(n_frames), read_poses(given), True)
    if given.ndim > 2:
        raise ValueError(
            f"y of shape {given.shape} must be one place for each frame, or poses of shape ({n_frames}, 2); reshape it."
        )
    labels = column_or_1d(given, warn=True)
    with warnings.catch_warnings():
        # That many classes have one frame is the usual case here.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        try:
            check_classification_targets(labels)
        except ValueError as error:
            raise ValueError(
                f"{str(error).split('. ')[0]}; for positions along a line pass poses of two columns, such as "
                "np.column_stack([y, 0 * y])."
            ) from error
    return Targets(labels, None, n_frames > 1 and len(np.unique(labels)) == n_frames)


def read_poses(given: Array) -> NDArray[np.float64]:
    """Return poses as finite numbers, (frames, coordinates), or raise."""
    try:
        poses = given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"poses of shape {given.shape} and dtype {given.dtype} must be numbers; convert them to floats."
        ) from None
    is_wrong = ~np.isfinite(poses).all(axis=1)
    if is_wrong.any():
        first = int(np.flatnonzero(is_wrong)[0])
        raise ValueError(
            f"poses have NaN or infinity in {int(is_wrong.sum())} of {len(poses)} frames, first in frame {first}; "
            "leave these frames out, or interpolate their poses."
        )
    return poses
