"""Tokens of a network in an ONNX file, which onnxruntime runs."""

import os
from collections.abc import Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features import image_files
from countinggrids.features.maps import FeatureMap
from countinggrids.features.outside import OutsideExtractor
from countinggrids.features.stream import BadItemError, Progress
from countinggrids.features.transformer import document

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and standard deviation of the colors of ImageNet, from 0 to 1, which most networks expect to be removed."""
USUAL_OUTPUT = "last_hidden_state"
MOST_SKIPPED = 16
"""Tokens before those of the patches, at most: class and register tokens."""
CHUNK = 2**24
"""Bytes that are hashed at a time."""


@document
class OnnxTokens(OutsideExtractor):
    """Descriptors by a network of your own in an ONNX file, such as the patch tokens of a vision transformer.

    The file is run on this machine with onnxruntime (extra `onnx`); nothing is downloaded. Collections keep the name
    of the file and a digest of its weights, and refuse to bag images with another network.

    Parameters
    ----------
    path : path-like
        The file. Weights beside it, in files whose names begin with its name, are part of it.
    output : str, default=None
        The output with the tokens, of shape (1, tokens, channels), or a feature map of shape (1, channels, rows,
        columns); None takes "last_hidden_state", or else the first output.
    patch : int, default=14
        Pixels along each side of the patch that a token describes. Images are resized to a multiple of it.
    skip : int, default=1
        Number of tokens before those of the patches, such as the class token.
    mean, std : sequence of float
        Mean and standard deviation of each color, from 0 to 1, that images are standardized with; by default those of
        ImageNet.
    {options}

    Attributes
    ----------
    name_ : str
        Name of the file.
    digest_ : str
        Digest of the weights.

    Examples
    --------
    >>> from countinggrids.features import Codebook, OnnxTokens
    >>> from sklearn.pipeline import make_pipeline
    >>> tokens = OnnxTokens("dinov2_small.onnx", patch=14, skip=1)
    >>> words = make_pipeline(tokens, Codebook(200, metric="cosine", pca=64)).fit(paths)  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "",
        output: str | None = None,
        patch: int = 14,
        skip: int = 1,
        mean: Sequence[float] = MEAN,
        std: Sequence[float] = STD,
        max_side: int | None = 448,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        self.path = path
        self.output = output
        self.patch = patch
        self.skip = skip
        self.mean = mean
        self.std = std
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose
        self.callback = callback

    def _identity(self) -> tuple[str, str]:
        self._check_options()
        network = self._network
        if self.output is not None and self.output not in network.outputs:
            raise ValueError(
                f"output={self.output!r} is none of the outputs of {self.path}, {', '.join(network.outputs)}; use one."
            )
        return Path(self.path).name, network.digest

    @property
    def _network(self) -> "Network":
        return network_of(self.path)

    def _check_options(self) -> None:
        super()._check_options()
        if not isinstance(self.skip, int | np.integer) or self.skip < 0:
            raise ValueError(
                f"skip={self.skip!r} must be a number of tokens of at least 0; use skip=1 for a class token."
            )
        for name in ("mean", "std"):
            values = np.asarray(getattr(self, name), dtype=float)
            if values.shape != (3,) or not np.isfinite(values).all() or (name == "std" and not (values > 0).all()):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} must be three numbers; use {MEAN if name == 'mean' else STD}."
                )

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        fixed = self._network.size
        size = tuple(max(1, round(n / self.patch)) * self.patch for n in pixels.shape[:2]) if fixed is None else fixed
        image = image_files.resized(pixels, size)
        colors = (image / 255 - np.asarray(self.mean)) / np.asarray(self.std)
        found = self._network.run(colors.transpose(2, 0, 1)[None], self.output)
        values = self._placed(found, tuple(n // self.patch for n in size))
        if not np.isfinite(values).all():
            raise BadItemError(f"{self.path} returned NaN or infinity; expected finite tokens; check mean and std.")
        step = size[0] // values.shape[0]
        return FeatureMap(values, (0, 0), step, step, pixels.shape[:2], image)

    def _placed(self, found: NDArray[Any], places: tuple[int, ...]) -> NDArray[Any]:
        """Arrange the output of one image as (rows, columns, channels)."""
        if found.ndim == 4 and len(found) == 1:
            return np.ascontiguousarray(found[0].transpose(1, 2, 0))
        if found.ndim != 3 or len(found) != 1:
            raise ValueError(
                f"output={self.output!r} of {self.path} has shape {found.shape}; expected (1, tokens, channels) or "
                f"(1, channels, rows, columns); use one of the outputs {', '.join(self._network.outputs)}."
            )
        rows, columns = places
        extra = found.shape[1] - rows * columns
        if extra != self.skip:
            is_class = 0 < extra <= MOST_SKIPPED
            advice = f"use skip={extra}" if is_class else "use the patch that the network was made with"
            raise ValueError(
                f"{self.path} returned {found.shape[1]} tokens for {rows}x{columns} patches of patch={self.patch} "
                f"pixels and skip={self.skip}; {advice}."
            )
        return found[0, self.skip :].reshape(rows, columns, -1)


def network_of(path: str | os.PathLike[str]) -> "Network":
    """Return the network of a file, which is read once as long as the file does not change."""
    if not os.path.isfile(path):
        raise ValueError(f"{os.fspath(path)!r} is not a file; expected a network in an ONNX file; check the path.")
    facts = os.stat(path)
    return _network_of(os.path.abspath(path), facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=2)
def _network_of(path: str, *_: int) -> "Network":
    return Network(path)


class Network:
    """A network in an ONNX file.

    Parameters
    ----------
    path : path-like
        The file.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        runtime = _runtime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # images are processed on several threads
        options.log_severity_level = 4
        try:
            self._session = runtime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has no common base class for its errors
            reason = " ".join(str(error).split())[:120]
            raise ValueError(
                f"{path} is no network that onnxruntime reads ({reason}); export it to ONNX again."
            ) from error
        self._input = self._session.get_inputs()[0]
        self.outputs = [each.name for each in self._session.get_outputs()]
        shape = self._input.shape
        if len(shape) != 4 or (shape[1] not in (3, None) and not isinstance(shape[1], str)):
            raise ValueError(
                f"{path} takes {self._input.name} of shape {shape}; expected images, (1, 3, height, width); export the "
                "network with such an input."
            )

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of the images that it takes, or None if it takes any."""
        height, width = self._input.shape[2:]
        return (height, width) if isinstance(height, int) and isinstance(width, int) else None

    @cached_property
    def digest(self) -> str:
        """Digest of the file, and of the files of weights beside it."""
        digest = sha256()
        files = (each for each in self.path.parent.iterdir() if each.name.startswith(self.path.name) and each.is_file())
        for file in sorted(files):
            with open(file, "rb") as opened:
                while chunk := opened.read(CHUNK):
                    digest.update(chunk)
        return digest.hexdigest()

    def run(self, images: NDArray[Any], output: str | None) -> NDArray[Any]:
        """Return an output for images.

        Parameters
        ----------
        images : ndarray of shape (n_images, 3, height, width)
            Standardized colors.
        output : str or None
            Which output; None takes the usual one.

        Returns
        -------
        found : ndarray
            The output, float32.
        """
        default = USUAL_OUTPUT if USUAL_OUTPUT in self.outputs else self.outputs[0]
        dtype = np.float16 if "float16" in self._input.type else np.float32
        try:
            [found] = self._session.run([output or default], {self._input.name: images.astype(dtype)})
        except Exception as error:  # onnxruntime has no common base class for its errors
            reason = " ".join(str(error).split())[:200]
            raise ValueError(
                f"{self.path} failed on images of shape {images.shape} ({reason}); check patch."
            ) from error
        return np.asarray(found, dtype=np.float32)


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            'running a network needs onnxruntime; install it with pip install "countinggrids[onnx]".'
        ) from error
    onnxruntime.disable_telemetry_events()
    return onnxruntime
