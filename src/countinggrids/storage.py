"""Models in files: one safetensors file each, with what it means in its metadata. Nothing is ever unpickled."""

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countinggrids import files, learn, rows
from countinggrids.model import GridModel

FORMAT, VERSION = "model", 1
CLASSES: dict[str, type[GridModel]] = {
    row.__name__: row
    for row in (
        rows.CountingGrid,
        rows.MixtureOfUnigrams,
        rows.SpatialBagOfWords,
        rows.DiscreteEpitome,
        rows.HybridEpitome,
    )
}


def save(model: GridModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; an existing file is replaced whole or not at all."""
    check_is_fitted(model)
    arrays = {"pi": model.pi_, "log_prior": model.log_prior_, "history": getattr(model, "history_", np.zeros(0))}
    parameters = {}
    for name, value in model.get_params().items():
        if name == "device":
            continue  # it belongs to the machine: a model from a graphics card can be used everywhere
        if isinstance(value, np.ndarray | list):
            arrays[f"parameter.{name}"] = np.asarray(value)
        else:
            # A RandomState has no place in a file; the model is fitted, so only later sampling notices.
            parameters[name] = None if isinstance(value, np.random.RandomState) else value
    stream = model._stream
    if stream is not None:
        arrays |= {"stream.counts": stream.counts, "stream.usage": stream.usage, "stream.totals": stream.totals}
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": parameters,
        "n_features_in": model.n_features_in_,
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "n_iter": model.n_iter_,
        "converged": getattr(model, "converged_", None),
        "fingerprint": model.fingerprint_,
        "stream": None if stream is None else [stream.weight, stream.n_batches],
    }
    files.write(path, facts, arrays)


def load(path: str | os.PathLike[str]) -> GridModel:
    """Read a model that `save` wrote.

    Raises
    ------
    ValueError
        If the file is truncated, not one of ours, from a later version, or does not fit together.

    Examples
    --------
    >>> import countinggrids as cg
    >>> model = cg.load("scene.safetensors")  # doctest: +SKIP
    """
    facts, arrays = files.read(path, FORMAT, VERSION)
    try:
        return _rebuild(facts, {name: np.array(array) for name, array in arrays.items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} does not fit together ({error}); wanted a file that save() wrote; save it again"
        ) from error


def _rebuild(facts: dict[str, Any], arrays: files.Arrays) -> GridModel:
    if facts["class"] not in CLASSES:
        raise ValueError(f"class {facts['class']!r} is not one of {', '.join(CLASSES)}")
    parameters = {name: value for name, value in facts["parameters"].items() if name != "device"}
    parameters |= {name.split(".", 1)[1]: array for name, array in arrays.items() if name.startswith("parameter.")}
    model = CLASSES[facts["class"]](**{name: _untupled(value) for name, value in parameters.items()})
    geometry = model._geometry()
    model.pi_, model.log_prior_, model.history_ = arrays["pi"], arrays["log_prior"], arrays["history"]
    model.n_features_in_, model.n_iter_ = int(facts["n_features_in"]), int(facts["n_iter"])
    if facts["converged"] is not None:
        model.converged_ = bool(facts["converged"])
    if facts.get("fingerprint") is not None:
        model.fingerprint_ = str(facts["fingerprint"])
    if facts["feature_names"]:
        model.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    n_features = model.n_features_in_ // geometry.n_column_sections
    groups = () if geometry.groups == 1 else (geometry.groups,)
    if model.pi_.shape != (*geometry.grid, *groups, n_features) or model.log_prior_.shape != geometry.grid:
        raise ValueError(f"pi has shape {model.pi_.shape}, the parameters say grid {geometry.grid}")
    if model.pi_.dtype != model.dtype or model.log_prior_.dtype != model.dtype:
        raise ValueError(f"pi is {model.pi_.dtype}, the parameters say {model.dtype}")
    if not np.isfinite(model.pi_).all() or model.pi_.min() < 0 or not np.isfinite(model.log_prior_).all():
        raise ValueError("pi or log_prior holds numbers that no model has")
    if facts["stream"] is not None:
        weight, n_batches = facts["stream"]
        parts = (arrays["stream.counts"], arrays["stream.usage"], arrays["stream.totals"])
        model._stream = learn.Stream(*parts, float(weight), int(n_batches))
    return model


def _untupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
