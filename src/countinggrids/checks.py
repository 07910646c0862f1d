"""Checks of what users give, before any work: what was given, what is wanted, what to do."""

from math import isfinite
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from countinggrids import device
from countinggrids.geometry import Geometry

Array = NDArray[Any]

LOCATION_PRIORS = ("smoothed", "exact", "uniform")
DTYPES = ("float32", "float64")


def check_options(model: Any) -> None:
    """Raise unless every option of a model that is not a shape makes sense."""
    _check_choice("location_prior", model.location_prior, LOCATION_PRIORS)
    _check_choice("dtype", model.dtype, DTYPES)
    device.check(model.device, model.dtype)
    for name in ("max_iter", "n_init"):
        value = getattr(model, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} is {value!r}; wanted an integer of at least 1; give for instance {name}=10")
    if not isinstance(model.tol, int | float | np.number) or not model.tol >= 0:
        raise ValueError(f"tol is {model.tol!r}; wanted a number of at least 0; give for instance tol=1e-5")
    if isinstance(model.eta, str):
        _check_choice("eta", model.eta, ("auto",))
    if isinstance(model.init, str):
        _check_choice("init", model.init, ("uniform",))
    _check_anneal(model.anneal)


def check_counts(model: Any, X: Any, is_fitting: bool) -> Any:
    """Give X as counts of the model's dtype, dense or CSR, or raise."""
    try:
        X = validate_data(
            model, X, reset=is_fitting, accept_sparse="csr", dtype=model.dtype, ensure_all_finite=False, copy=False
        )
    except ValueError as error:
        raise _in_house_form(error) from error
    values = check_values(X, "X")
    if is_fitting:
        check_enough(X.shape[0], bool(values.any()))
    return X


def check_ends(X: Any, name: str) -> None:
    """Raise about a CSR table from outside whose rows do not lie one behind the other."""
    if X.format == "csr" and ((np.diff(X.indptr) < 0).any() or X.indptr[-1] > X.indices.size):
        raise ValueError(f"{name} is damaged (its rows overlap); wanted a CSR table of counts; make it again")


def check_values(X: Any, name: str, first_row: int = 0) -> Array:
    """Give the values that a table, or its rows from `first_row` on, hold, or raise about those that are no counts."""
    values: Array = X.data if sp.issparse(X) else X
    # Compiled code follows the indices wherever they point.
    if sp.issparse(X) and X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise ValueError(f"{name} is damaged (a column outside the table); wanted a CSR table of counts; make it again")
    # The sum of finite numbers is finite or overflows; only then is a closer look worth a pass.
    if not np.isfinite(values.sum(dtype=np.float64)):
        what = f"{name} holds {{value}} at row {{row}}, column {{column}}"
        _raise_at(X, first_row, ~np.isfinite(values), what, "replace missing counts by 0")
    if values.size and values.min() < 0:
        what = f"Negative values in data: {name} holds {{value}} at row {{row}}, column {{column}}"
        _raise_at(X, first_row, values < 0, what, f"check how {name} was made")
    return values


def check_enough(n_bags: int, has_counts: bool) -> None:
    """Raise unless there is something to learn from."""
    if n_bags < 2:
        raise ValueError(f"X has n_samples={n_bags} bag; wanted at least 2 to relate to each other; give more bags")
    if not has_counts:
        raise ValueError("X holds no counts at all; wanted at least one bag with a feature; check how X was made")


def check_columns(model: Any, n_columns: int, is_fitting: bool) -> None:
    """Let a model take its number of columns from blocks of bags, or raise if it has another one."""
    if is_fitting:
        model.n_features_in_ = n_columns
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
    elif model.n_features_in_ != n_columns:
        raise ValueError(
            f"X has {n_columns} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input; build X with the sections and the vocabulary that were fitted."
        )


def n_features_of(X: Any, geometry: Geometry) -> int:
    """Tell how many features a section has, all groups together, from the number of columns."""
    n_sections = geometry.n_column_sections
    n_columns = X.shape[1]
    if n_columns % n_sections:
        raise ValueError(
            f"X has {n_columns} columns; wanted a multiple of the {n_sections} sections; "
            "build X with the same sections, for instance with countinggrids.bag"
        )
    if n_columns // n_sections < 2:
        raise ValueError(
            f"X has n_features={n_columns // n_sections} feature in each of {n_sections} sections; "
            "wanted at least 2, for one feature fits anywhere equally well; give more features or fewer sections"
        )
    return n_columns // n_sections * geometry.groups


def check_weights(sample_weight: ArrayLike | None, X: Any) -> Array:
    """Give one weight per bag, or raise."""
    n_bags = X.shape[0]
    if sample_weight is None:
        return np.ones(n_bags, dtype=X.dtype)
    weights = np.asarray(sample_weight, dtype=X.dtype)
    if weights.ndim == 0:
        weights = np.full(n_bags, weights)
    if weights.shape != (n_bags,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; wanted one weight for each of the {n_bags} bags, ({n_bags},)"
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError("sample_weight holds NaN, infinity or a negative number; wanted finite weights of at least 0")
    if not weights.any():
        raise ValueError("sample_weight is zero for every bag; wanted a weight above zero for at least one")
    return weights


def check_batch_size(batch_size: Any, anneal: Any) -> None:
    """Raise unless stepwise EM has a size to go by, and an annealing to go along."""
    if batch_size is None:
        return
    if not isinstance(batch_size, int | np.integer) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(
            f"batch_size is {batch_size!r}; wanted an integer of at least 1, or None; give for instance batch_size=500"
        )
    if anneal is None:
        raise ValueError(
            f"batch_size is {batch_size} and anneal is None; wanted an annealing, whose iterations look at batches; "
            "give anneal='auto', or leave batch_size out"
        )


def check_eta(eta: Any, geometry: Geometry, n_features: int) -> Array:
    """Give eta as one number or one per feature, or raise."""
    values = np.asarray(eta, dtype=np.float64)
    per_group = n_features // geometry.groups
    if values.shape not in ((), (per_group,), (n_features,)):
        raise ValueError(
            f"eta has shape {values.shape}; wanted 'auto', a number or one number per feature, ({per_group},)"
        )
    if not np.isfinite(values).all() or values.min() < 0:
        raise ValueError(f"eta is {eta!r}; wanted finite numbers of at least 0; give for instance eta='auto'")
    return np.tile(values, geometry.groups) if values.shape == (per_group,) else values


def check_init(init: ArrayLike, geometry: Geometry, n_features: int) -> Array:
    """Give an array of pi's public shape as planes, or raise."""
    pi = np.asarray(init, dtype=np.float64)
    groups = () if geometry.groups == 1 else (geometry.groups,)
    shape = (*geometry.grid, *groups, n_features // geometry.groups)
    if pi.shape != shape:
        raise ValueError(f"init has shape {pi.shape}; wanted that of pi_, {shape}; give such an array or 'uniform'")
    if not np.isfinite(pi).all() or pi.min() < 0 or not (pi.sum(axis=-1) > 0).all():
        raise ValueError(
            "init must be finite, at least 0, and more than 0 somewhere in each cell; give such an array or 'uniform'"
        )
    return np.moveaxis(pi.reshape(*geometry.grid, n_features), -1, 0)


def _check_anneal(anneal: Any) -> None:
    if anneal is None or (isinstance(anneal, str) and anneal == "auto"):
        return
    wanted = "wanted 'auto', None or (start, rate, end) with 0 < start <= end <= 1 and rate > 1"
    try:
        start, rate, end = (float(value) for value in anneal)
    except (TypeError, ValueError):
        raise ValueError(f"anneal is {anneal!r}; {wanted}; give for instance anneal=(0.01, 1.03, 1.0)") from None
    if not (0 < start <= end <= 1 and rate > 1 and isfinite(rate)):
        raise ValueError(f"anneal is {anneal!r}; {wanted}; give for instance anneal=(0.01, 1.03, 1.0)")


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} is {value!r}; wanted one of {listed}; give for instance {name}={choices[0]!r}")


def _in_house_form(error: ValueError) -> ValueError:
    """Add to scikit-learn's messages what to do about them."""
    text = str(error)
    if "could not convert string" in text:
        return ValueError(
            f"X holds text ({text.split(': ', 1)[-1]}); wanted counts; "
            "count the words first, for instance with scikit-learn's CountVectorizer"
        )
    if "features, but" in text:
        return ValueError(text.rstrip(".") + "; build X with the sections and the vocabulary that were fitted.")
    return error


def _raise_at(X: Any, first_row: int, is_wrong: Array, what: str, advice: str) -> None:
    """Raise about the first wrong entry of X."""
    if sp.issparse(X):
        place = int(np.flatnonzero(is_wrong)[0])
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        column, value = int(X.indices[place]), X.data[place]
    else:
        row, column = (int(n) for n in np.argwhere(is_wrong)[0])
        value = X[row, column]
    name = "NaN" if np.isnan(value) else "infinity (inf)" if np.isinf(value) else f"{value:g}"
    given = what.format(value=name, row=first_row + row, column=column)
    raise ValueError(f"{given}; wanted finite counts of at least 0; {advice}")
