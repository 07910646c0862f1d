"""Files of models: one safetensors file each, with JSON metadata. Nothing is unpickled."""

import os
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from countinggrids.core import steps
from countinggrids.core.em import NOTHING
from countinggrids.core.geometry import Geometry
from countinggrids.data import container, estimator_file, validation
from countinggrids.data.constraints import check_parameters
from countinggrids.models import compact as compact_form
from countinggrids.models.base import GridModel
from countinggrids.models.componential import ComponentialGrid
from countinggrids.models.counting_grid import CountingGrid
from countinggrids.models.elastic import ElasticGrid
from countinggrids.models.epitomes import DiscreteEpitome, HybridEpitome
from countinggrids.models.mixtures import MixtureOfUnigrams, SpatialBagOfWords
from countinggrids.training.stepwise import Fitted, Stream

FORMAT, VERSION = "model", 2
CLASSES: dict[str, type[GridModel]] = {
    model.__name__: model
    for model in (
        CountingGrid,
        ComponentialGrid,
        ElasticGrid,
        MixtureOfUnigrams,
        SpatialBagOfWords,
        DiscreteEpitome,
        HybridEpitome,
    )
}
TOLERANCE = {"float32": 1e-3, "float64": 1e-6}
"""How far probabilities may be from sum one, by dtype."""


def save(model: GridModel, path: str | os.PathLike[str], compact: bool = False) -> None:
    """Write a fitted model; an existing file is replaced whole or not at all.

    Parameters
    ----------
    model : estimator
        The fitted model.
    path : path-like
        Where to write.
    compact : bool, default=False
        Whether probabilities are rounded to one byte.
    """
    check_is_fitted(model)
    pi = compact_form.encode(model.pi_, len(model.geometry_.grid)) if compact else {"pi": model.pi_}
    arrays = pi | {"log_prior": model.log_prior_, "history": getattr(model, "history_", np.zeros(0))}
    parameters = {}
    for name, value in model.get_params().items():
        if name == "device":
            continue  # it belongs to the machine: a model from a graphics card can be used everywhere
        if isinstance(value, np.ndarray | list):
            arrays[f"parameter.{name}"] = np.asarray(value)
        else:
            # A RandomState has no place in a file; the model is fitted, so only later sampling notices.
            parameters[name] = None if isinstance(value, np.random.RandomState) else value
    if model._extra.size:
        arrays["extra"] = model._extra
    stream = model._stream
    if stream is not None:
        arrays |= {"stream.counts": stream.counts, "stream.usage": stream.usage, "stream.totals": stream.totals}
        if stream.extra.size:
            arrays["stream.extra"] = stream.extra
    fitted = model._from_fit
    if fitted is not None:
        arrays |= {f"fit.{name}": getattr(fitted, name) for name in ("tokens", "usage", "totals", "extra")}
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": parameters,
        "geometry": asdict(model.geometry_),
        "inverse_temperature": model.inverse_temperature_,
        "location_prior": model.location_prior_,
        "n_features_in": model.n_features_in_,
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "n_iter": model.n_iter_,
        "converged": getattr(model, "converged_", None),
        "fingerprint": model.fingerprint_,
        "stream": None if stream is None else [stream.weight, stream.n_batches, stream.is_averaged],
        "fit_weight": None if fitted is None else fitted.weight,
        "is_scene": bool(model._is_scene),
    }
    container.write(path, facts, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model, or another estimator, that `save` wrote.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : estimator
        The fitted estimator.

    Raises
    ------
    ValueError
        If the file is damaged, of another format or version, or inconsistent.

    Examples
    --------
    >>> import countinggrids as cg
    >>> model = cg.load("scene.safetensors")  # doctest: +SKIP
    """
    if container.read_facts(path).get("format") == estimator_file.FORMAT:
        return estimator_file.read(path)
    facts, arrays = container.read(path, FORMAT, VERSION)
    held = {name: np.array(array) for name, array in arrays.items()}
    with container.fitting_together(path):
        return _rebuild(facts, held)


def _rebuild(facts: dict[str, Any], arrays: container.Arrays) -> GridModel:
    if facts["class"] not in CLASSES:
        raise ValueError(f"class {facts['class']!r} is not one of {', '.join(CLASSES)}")
    parameters = {name: value for name, value in facts["parameters"].items() if name != "device"}
    parameters |= {name.split(".", 1)[1]: array for name, array in arrays.items() if name.startswith("parameter.")}
    model = CLASSES[facts["class"]](**{name: _untupled(value) for name, value in parameters.items()})
    model.geometry_ = model._geometry_type(**{name: _untupled(value) for name, value in facts["geometry"].items()})
    model.inverse_temperature_ = float(facts["inverse_temperature"])
    model.location_prior_ = str(facts["location_prior"])
    model.log_prior_, model.history_ = arrays["log_prior"], arrays["history"]
    model.pi_ = _pi_of(arrays, model.log_prior_.dtype.name)
    model.n_features_in_, model.n_iter_ = int(facts["n_features_in"]), int(facts["n_iter"])
    if facts["converged"] is not None:
        model.converged_ = bool(facts["converged"])
    if facts.get("fingerprint") is not None:
        model.fingerprint_ = str(facts["fingerprint"])
    if facts["feature_names"]:
        model.feature_names_in_ = np.array([str(name) for name in facts["feature_names"]], dtype=object)
        if len(model.feature_names_in_) != model.n_features_in_:
            raise ValueError(f"{len(model.feature_names_in_)} names are given for {model.n_features_in_} columns")
    if facts["stream"] is not None:
        weight, n_batches, *rest = facts["stream"]
        counts, usage, totals = (arrays[f"stream.{name}"] for name in ("counts", "usage", "totals"))
        extra = arrays.get("stream.extra", NOTHING)
        model._stream = Stream(counts, usage, totals, float(weight), int(n_batches), extra, rest == [True])
    if facts.get("fit_weight") is not None:
        tokens, usage, totals, extra = (arrays[f"fit.{name}"] for name in ("tokens", "usage", "totals", "extra"))
        model._from_fit = Fitted(tokens, usage, totals, float(facts["fit_weight"]), extra)
    model._is_scene = facts.get("is_scene") is True
    model._extra = arrays.get("extra", NOTHING)
    check_fitted(model)
    return model


def _pi_of(arrays: container.Arrays, dtype: str) -> NDArray[Any]:
    """Return pi as it was saved, whole or in its compact form."""
    if "pi" in arrays:
        return arrays["pi"]
    if dtype not in validation.DTYPES:
        raise ValueError(f"log_prior is {dtype}")
    return compact_form.decode(arrays["pi.codes"], arrays["pi.scale"], dtype)


def check_fitted(model: GridModel) -> None:
    """Raise unless fitted attributes that were read from a file are those of a model."""
    geometry = model.geometry_
    if type(geometry) is not model._geometry_type or type(geometry.groups) is not int or geometry.groups < 1:
        raise ValueError(f"the geometry is {geometry!r:.80}")
    if not 0 < model.inverse_temperature_ <= 1 or model.location_prior_ not in validation.LOCATION_PRIORS:
        raise ValueError(f"inverse temperature {model.inverse_temperature_}, location prior {model.location_prior_!r}")
    _check_options(model, geometry)
    n_features = model.n_features_in_ // geometry.n_column_sections
    groups = () if geometry.groups == 1 else (geometry.groups,)
    if model.pi_.shape != (*geometry.grid, *groups, n_features) or model.log_prior_.shape != geometry.grid:
        raise ValueError(f"pi has shape {model.pi_.shape}, the geometry says grid {geometry.grid}")
    if model.pi_.dtype.name not in validation.DTYPES or model.log_prior_.dtype != model.pi_.dtype:
        raise ValueError(f"pi is {model.pi_.dtype} and log_prior {model.log_prior_.dtype}")
    _check_distributions(model)
    _check_extra("extra", model._extra, geometry)
    history = getattr(model, "history_", np.zeros(0))
    if history.ndim != 1 or history.dtype.kind != "f":
        raise ValueError(f"history is {history.dtype} of shape {history.shape}")
    if model._stream is not None:
        _check_stream(model._stream, (n_features * geometry.groups, *geometry.grid), geometry)
    if model._from_fit is not None:
        _check_fit(model._from_fit, (n_features * geometry.groups,), geometry)


def _check_distributions(model: GridModel) -> None:
    """Raise unless pi is a distribution over features in every cell, and log_prior one over cells."""
    tolerance = TOLERANCE[model.pi_.dtype.name]
    sums = model.pi_.sum(axis=-1, dtype=np.float64)
    if not model.pi_.min() >= 0 or not np.abs(sums - 1).max() <= tolerance:
        raise ValueError(f"pi holds numbers that no model has; wanted probabilities that sum to one within {tolerance}")
    if not abs(logsumexp(model.log_prior_.astype(np.float64))) <= tolerance:
        raise ValueError(f"log_prior holds numbers that no model has; wanted a sum of exp within {tolerance} of one")


def _check_options(model: GridModel, geometry: Geometry) -> None:
    """Raise about options, names or numbers of columns that no fitted model has."""
    check_parameters(model)
    n_features, rest = divmod(model.n_features_in_, geometry.n_column_sections)
    if rest or n_features < 1 or model.n_iter_ < 0:
        raise ValueError(f"there are {model.n_features_in_} columns and {model.n_iter_} iterations")
    if not isinstance(model.eta, str):
        validation.check_eta(model.eta, geometry, n_features * geometry.groups)
    if not isinstance(model.init, str):
        validation.check_init(model.init, geometry, n_features * geometry.groups)


def _check_extra(name: str, extra: Any, geometry: Geometry) -> None:
    """Raise unless extra parameters or statistics of a model have the shape of its first ones."""
    shape = steps.of(geometry).first_extra(geometry).shape
    if extra.shape != shape or extra.dtype != np.float64 or not np.isfinite(extra).all():
        raise ValueError(f"{name} is {extra.dtype} of shape {extra.shape}, wanted finite float64 of shape {shape}")


def _check_fit(fitted: Fitted, totals: tuple[int, ...], geometry: Geometry) -> None:
    """Raise unless this is what a fit leaves for `partial_fit`."""
    parts = fitted.tokens, fitted.usage, fitted.totals
    shapes = [part.shape for part in parts]
    if shapes != [(geometry.groups, *geometry.grid), geometry.grid, totals]:
        raise ValueError(f"the statistics of the fit have shapes {shapes}")
    if not all(np.isfinite(part).all() and (part >= 0).all() for part in parts) or not 0 < fitted.weight < np.inf:
        raise ValueError("the statistics of the fit hold numbers that no fit has")
    if fitted.extra.size:  # a model may have extra parameters without statistics of them
        _check_extra("fit.extra", fitted.extra, geometry)


def _check_stream(stream: Stream, shape: tuple[int, ...], geometry: Geometry) -> None:
    """Raise unless this is what stepwise EM carries from batch to batch."""
    parts = stream.counts, stream.usage, stream.totals
    shapes = [part.shape for part in parts]
    if shapes != [shape, shape[1:], shape[:1]] or not all(np.isfinite(part).all() for part in parts):
        raise ValueError(f"stream holds arrays of shapes {shapes}, or numbers that are not finite")
    if not 0 < stream.weight < np.inf or not 1 <= stream.n_batches < 2**53:
        raise ValueError(f"stream has weight {stream.weight} after {stream.n_batches} batches")
    if stream.extra.size:
        _check_extra("stream.extra", stream.extra, geometry)


def _untupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
