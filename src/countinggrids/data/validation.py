"""Checks of data and of parameters that depend on it, before any work."""

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_non_negative, validate_data

from countinggrids.core.geometry import Geometry
from countinggrids.data import sparse_files
from countinggrids.data.counts import in_one_form, tokens_of
from countinggrids.features.maps import FeatureMap
from countinggrids.features.stream import Stream

Array = NDArray[Any]

LOCATION_PRIORS = ("smoothed", "exact", "uniform")
DTYPES = ("float32", "float64")
NO_Y = "no_validation"
"""scikit-learn's value of y for an estimator without labels."""
SMALLEST_TOTAL, LARGEST_TOTAL = 1e-13, 1e13
"""Limits of all tokens times their weights. Expected counts are divided by histograms down to `em.SMALLEST`, 1e-25:
beyond the upper limit the quotient may be infinite in float32. Below the lower one, small fractions are lost."""
GRID_ARRAYS = 4
"""Arrays of the size of the grid that a fit holds at least."""


def check_numbers(model: Any, geometry: Geometry, n_features: int) -> None:
    """Raise unless eta and init of a model have the shapes of its features."""
    if not isinstance(model.eta, str):
        check_eta(model.eta, geometry, n_features)
    if not isinstance(model.init, str):
        check_init(model.init, geometry, n_features)


def check_memory(geometry: Geometry, n_features: int, dtype: Any) -> None:
    """Raise if the arrays of a grid cannot fit into the memory of this machine."""
    needed = GRID_ARRAYS * n_features * geometry.n_cells * np.dtype(dtype).itemsize
    memory = _physical_memory()
    if needed > memory:
        raise ValueError(
            f"grid={geometry.grid} with {n_features} features takes {needed / 1e9:.1f} GB while it is fitted, and this "
            f"machine has {memory / 1e9:.1f} GB; use fewer cells or fewer features."
        )


def _physical_memory() -> float:
    """Return the bytes of memory of this machine, infinite where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return np.inf


def check_unchanged(model: Any, geometry: Geometry) -> None:
    """Raise if the shape or the dtype of a model was changed between two batches of `partial_fit`."""
    if not hasattr(model, "pi_"):
        return
    for name, now, before in (("geometry", geometry, model.geometry_), ("dtype", model.dtype, model.pi_.dtype.name)):
        if now != before:
            raise ValueError(
                f"{name}={now} must be that of the first batch, {before}; set the parameters back, or call fit."
            )


def check_counts(model: Any, X: Any, is_fitting: bool) -> Any:
    """Return X as counts of the model's dtype, dense or CSR, and the tokens of each bag, or raise."""
    try:
        X = validate_data(model, X, reset=is_fitting, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    except ValueError as error:
        raise _with_advice(error) from error
    tokens = check_values(X, "X")
    if is_fitting:
        check_enough(tokens)
    return in_one_form(X, dtype_of(model, is_fitting)), tokens


def dtype_of(model: Any, is_fitting: bool) -> Any:
    """Return the dtype that counts are converted to: that of a fitted model, or the parameter."""
    return np.dtype(model.dtype) if is_fitting else model.pi_.dtype


def refuse_maps(X: Any) -> None:
    """Raise about feature maps in place of bags: a list of them would be read as blocks of bags."""
    first = X[0] if isinstance(X, list | tuple) and X else None
    has_sparse_blocks = first is not None and any(sp.issparse(block) for block in X)
    is_integer_map = isinstance(first, np.ndarray) and first.ndim == 2 and first.dtype.kind in "iu"
    if isinstance(X, Stream | FeatureMap) or isinstance(first, FeatureMap):
        raise ValueError(
            f"X is a {type(X).__name__} of feature maps and must be bags of shape (n_bags, n_columns); put "
            "Bagger(sections) before the model in the pipeline, or pass countinggrids.bag(X, sections)."
        )
    if is_integer_map and not has_sparse_blocks:
        raise ValueError(
            f"X is a {type(X).__name__} of integer arrays, feature maps or blocks of counts, and must be bags "
            "of shape (n_bags, n_columns); pass countinggrids.bag(X, sections) for feature maps, "
            "and np.vstack(X), or blocks of floats, for counts."
        )


def check_table(estimator: Any, X: Any, is_fitting: bool, y: Any = NO_Y, **options: Any) -> Any:
    """Validate X with scikit-learn's `validate_data`, and return it in one form; with y, return both."""
    refuse_maps(X)
    checked = validate_data(estimator, X, y, reset=is_fitting, **{"dtype": None, "accept_sparse": "csr"} | options)
    return in_one_form(checked) if isinstance(y, str) and y == NO_Y else (in_one_form(checked[0]), checked[1])


def check_bags(estimator: Any, X: Any, is_fitting: bool, y: Any = NO_Y) -> Any:
    """Return X as counts of at least 0, dense or CSR, which may be empty, or raise; with y, return both."""
    checked = check_table(estimator, X, is_fitting, y, dtype=np.float64)
    counts = checked if isinstance(y, str) and y == NO_Y else checked[0]
    check_non_negative(counts, type(estimator).__name__)
    check_tokens(tokens_of(counts), "X")
    return checked


def check_ends(X: Any, name: str) -> None:
    """Raise about a sparse table whose indices would crash SciPy's compiled code.

    The columns of a CSR table are checked with its values, some rows at a time; other formats are converted as a whole.
    """
    try:
        if X.format == "csr":
            sparse_files.check_ends(X.indptr, X.shape[0], X.indices.size)
        elif X.format in ("csc", "bsr"):
            X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is damaged ({error}); make the sparse matrix again.") from error


def check_values(X: Any, name: str, first_row: int = 0) -> Array:
    """Return the tokens of each bag of a table, or of its rows from `first_row` on; raise about invalid counts."""
    values: Array = X.data if sp.issparse(X) else X
    # Compiled code follows the indices wherever they point.
    if sp.issparse(X) and X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise ValueError(f"{name} is damaged (a column outside the table); make the sparse matrix again.")
    with np.errstate(over="ignore", invalid="ignore"):
        tokens = tokens_of(X)
    # The sum of finite numbers is finite or overflows; only then is a closer look worth a pass.
    if not np.isfinite(tokens).all() and not np.isfinite(values).all():
        what = f"{name} has {{value}} in row {{row}}, column {{column}}"
        _raise_at(X, first_row, ~np.isfinite(values), what, "replace missing counts by 0")
    if values.size and values.min() < 0:
        what = f"Negative values in data: {name} has {{value}} in row {{row}}, column {{column}}"
        _raise_at(X, first_row, values < 0, what, f"check how {name} was made")
    check_tokens(tokens, name, first_row)
    return tokens


def check_tokens(tokens: Array, name: str, first_row: int = 0) -> None:
    """Raise about a bag with too many tokens to sum."""
    if tokens.size and tokens.max() > LARGEST_TOTAL:
        row = int(tokens.argmax())
        raise ValueError(
            f"{name} has {tokens[row]:g} tokens in row {first_row + row} and must have at most {LARGEST_TOTAL:g}; "
            "divide the counts by a constant."
        )


def check_enough(tokens: Array) -> None:
    """Raise unless there are two bags and one token, given the tokens of each bag."""
    if tokens.size < 2:
        raise ValueError(f"X has n_samples={tokens.size} and must have at least 2 bags; pass more bags.")
    if not tokens.any():
        raise ValueError("X has no counts and must have at least one; check how X was made.")


def check_columns(model: Any, n_columns: int, is_fitting: bool) -> None:
    """Set the number of columns of a model that is fitted; raise if a fitted one has another."""
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
    """Return the number of features of a section, all groups together, from the number of columns."""
    n_sections = geometry.n_column_sections
    n_columns = X.shape[1]
    if n_columns % n_sections:
        raise ValueError(
            f"X has {n_columns} columns and must have a multiple of its {n_sections} sections; "
            "build X with the same sections, for instance with countinggrids.bag."
        )
    if n_columns // n_sections < 2:
        raise ValueError(
            f"X has n_features={n_columns // n_sections} in each of {n_sections} sections and must have at least 2; "
            "use more features or fewer sections."
        )
    return n_columns // n_sections * geometry.groups


def check_weights(sample_weight: ArrayLike | None, n_bags: int) -> Array:
    """Return one weight for each bag, or raise."""
    weights = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_bags, weights)
    if weights.shape != (n_bags,):
        raise ValueError(
            f"sample_weight of shape {weights.shape} must have shape ({n_bags},); pass one weight for each bag."
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError("sample_weight has NaN, infinity or a negative number; use finite weights of at least 0.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every bag; use a weight above 0 for at least one.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total > LARGEST_TOTAL:
        raise ValueError(
            f"sample_weight sums to {total:g} and must sum to at most {LARGEST_TOTAL:g}; "
            "divide the weights by a constant."
        )
    return weights


def check_total(weights: Array, tokens: Array, smallest: float = SMALLEST_TOTAL) -> None:
    """Raise unless the sum of the tokens times the weights of their bags is within the limits."""
    total = weights @ tokens
    if total == 0 and (tokens > 0).any():
        raise ValueError("sample_weight is 0 for every bag with counts; use a weight above 0 for at least one.")
    if not smallest <= total <= LARGEST_TOTAL:
        raise ValueError(
            f"X has {total:g} tokens, times their sample_weight, and must have {smallest:g} to {LARGEST_TOTAL:g}; "
            "multiply the counts or the weights by a constant."
        )


def check_batches(batch_size: int | None, anneal: Any) -> None:
    """Raise if stepwise EM is asked for without annealing, whose iterations use the batches."""
    if batch_size is not None and anneal is None:
        raise ValueError(f"batch_size={batch_size} must come with annealing; use anneal='auto' or batch_size=None.")


def check_eta(eta: Any, geometry: Geometry, n_features: int) -> Array:
    """Return eta as one number or one per feature, or raise."""
    values = np.asarray(eta, dtype=np.float64)
    per_group = n_features // geometry.groups
    if values.shape not in ((), (per_group,), (n_features,)):
        raise ValueError(
            f"eta of shape {values.shape} must have shape ({per_group},), one number per feature; "
            "use such an array, a number or eta='auto'."
        )
    if not np.isfinite(values).all() or values.min() < 0:
        raise ValueError(f"eta={eta!r} must be finite and at least 0; use for instance eta='auto'.")
    with np.errstate(over="ignore"):
        total = float(values.sum() * (n_features if values.ndim == 0 else 1))
    if total > LARGEST_TOTAL:
        raise ValueError(
            f"eta sums to {total:g} over the features and must sum to at most {LARGEST_TOTAL:g}; "
            "use for instance eta='auto'."
        )
    return np.tile(values, geometry.groups) if values.shape == (per_group,) else values


def check_init(init: ArrayLike, geometry: Geometry, n_features: int) -> Array:
    """Return an array of the shape of `pi_` with its features first, or raise."""
    pi = np.asarray(init, dtype=np.float64)
    groups = () if geometry.groups == 1 else (geometry.groups,)
    shape = (*geometry.grid, *groups, n_features // geometry.groups)
    if pi.shape != shape:
        raise ValueError(f"init of shape {pi.shape} must have that of pi_, {shape}; use such an array or 'uniform'.")
    if not np.isfinite(pi).all() or pi.min() < 0 or not (pi.sum(axis=-1) > 0).all():
        raise ValueError(
            "init must be finite, at least 0, and above 0 for a feature of each cell; use such an array or 'uniform'."
        )
    largest = pi.reshape(-1, n_features // geometry.groups).max(axis=1)
    if largest.min() < SMALLEST_TOTAL or largest.max() > LARGEST_TOTAL:
        raise ValueError(
            f"init has cells whose largest numbers are from {largest.min():g} to {largest.max():g}, and must be from "
            f"{SMALLEST_TOTAL:g} to {LARGEST_TOTAL:g}; divide every cell by its sum."
        )
    return np.moveaxis(pi.reshape(*geometry.grid, n_features), -1, 0)


def _with_advice(error: ValueError) -> ValueError:
    """Extend messages of scikit-learn by what to do."""
    text = str(error)
    if "could not convert string" in text or "arrays of bytes/strings" in text:
        return ValueError(
            f"X has text ({text.split(': ', 1)[-1].split('.')[0]}) and must have counts; "
            "count the words first, for instance with scikit-learn's CountVectorizer."
        )
    if "features, but" in text:
        return ValueError(text.rstrip(".") + "; build X with the sections and the vocabulary that were fitted.")
    if "array with dim" in text:
        return ValueError(
            text.rstrip(".") + "; pass bags, one row each: countinggrids.bag(X, sections) for maps of integer labels, "
            "and an extractor such as DenseSIFT() with a Codebook and a Bagger for images."
        )
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
    raise ValueError(f"{given} and must have finite counts of at least 0; {advice}.")
