"""The same counts give the same bits, in whatever order and format they lie in memory."""

from itertools import pairwise

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.data import counts
from estimators import BAGS, ESTIMATORS, IMAGES, answers

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(1)
MODEL = cg.CountingGrid((4, 4), 2, max_iter=9, tol=1, random_state=0)
SPARSE = sp.csr_array(np.where(RNG.random(BAGS.shape) < 0.6, 0, BAGS * np.float32(1.1)))


def every_other(X):
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]), X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def unsorted(X):
    """Reverse the entries of every row."""
    ends = X.indptr
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(ends)])
    return sp.csr_array((X.data[order], X.indices[order], ends), X.shape)


def with_zeros(X):
    """Store a zero in front of every row."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    entries = np.r_[np.zeros(X.shape[0], X.dtype), X.data]
    places = np.r_[np.arange(X.shape[0]), rows], np.r_[np.zeros(X.shape[0], int), X.indices]
    order = np.lexsort((places[1], places[0]))
    ends = np.searchsorted(places[0][order], np.arange(X.shape[0] + 1))
    return sp.csr_array((entries[order], places[1][order], ends), X.shape)


def with_long_indices(X):
    again = X.copy()
    again.indices, again.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return again


def halved(X):
    """Store every count in two halves."""
    return sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape)


ORDERS = {
    "Fortran": np.asfortranarray,
    "every other row and column": every_other,
    "backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "data frame": pd.DataFrame,
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}
FORMATS = {
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "LIL": sp.lil_matrix,
    "unsorted": unsorted,
    "zeros": with_zeros,
    "long indices": with_long_indices,
    "halves": halved,
}
OF_TABLES = {name: case for name, case in ESTIMATORS.items() if case[1] is BAGS or case[1] is IMAGES}
TAKES_SPARSE = [name for name, case in OF_TABLES.items() if case[1] is BAGS]


def learnt(name, X):
    """Fit an estimator; give its answers."""
    estimator, _, y = ESTIMATORS[name]
    estimator = estimator if "fitted" in name else type(estimator)(**estimator.get_params(deep=False))
    return answers(estimator.fit(X) if y is None else estimator.fit(X, y), X, y)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", OF_TABLES)
def test_any_memory_order_gives_the_same_bits(name, order):
    X = OF_TABLES[name][1] * np.float32(1.1)
    given, wanted = learnt(name, ORDERS[order](X)), learnt(name, X)
    assert [what for what in wanted if given[what] != wanted[what]] == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", TAKES_SPARSE)
def test_any_sparse_format_gives_the_same_bits(name, form):
    given = FORMATS[form](SPARSE)
    before = given.copy()
    found, wanted = learnt(name, given), learnt(name, SPARSE)
    assert [what for what in wanted if found[what] != wanted[what]] == []
    assert (given != before).sum() == 0
    assert given.nnz == before.nnz


@pytest.mark.parametrize("order", ORDERS)
def test_tables_blocks_and_files_in_any_order_give_the_same_bits(order, tmp_path):
    X = RNG.poisson(2, (100, 50)).astype(np.float32)  # large enough for BLAS to care
    model = cg.CountingGrid((10, 10), 4, max_iter=9, tol=1, random_state=0)
    wanted = model.fit(X).pi_.tobytes(), model.score_samples(X).tobytes()
    table = ORDERS[order](X)
    np.save(tmp_path / "bags.npy", table)
    for given in (table, [table[:7], table[7:]], tmp_path / "bags.npy", da.from_array(np.asarray(table), (9, 5))):
        assert (model.fit(given).pi_.tobytes(), np.asarray(model.score_samples(given)).tobytes()) == wanted


@pytest.mark.parametrize("form", FORMATS)
def test_sparse_blocks_of_any_format_give_the_same_bits(form):
    wanted = MODEL.fit(SPARSE).pi_.tobytes(), MODEL.score_samples(SPARSE).tobytes()
    blocks = [FORMATS[form](SPARSE[:7]), FORMATS[form](SPARSE[7:])]
    assert (MODEL.fit(blocks).pi_.tobytes(), MODEL.score_samples(blocks).tobytes()) == wanted


def test_what_is_in_order_is_not_copied():
    assert np.shares_memory(counts.in_one_form(BAGS), BAGS)
    assert counts.in_one_form(SPARSE).data is SPARSE.data
    assert counts.in_one_form(np.asfortranarray(BAGS)).flags.c_contiguous
    assert not np.shares_memory(counts.in_one_form(with_zeros(SPARSE)).data, SPARSE.data)
