"""The compiled loops against NumPy and SciPy, and the package without them."""

import importlib.util
import subprocess
import sys
import warnings
from math import prod
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.core import arrays
from countinggrids.kernels import native
from countinggrids.kernels.counts import SparseCounts, SparseProducts, as_counts
from countinggrids.kernels.threads import Threads
from countinggrids.kernels.tuning import Tuning

BUILD = Path(__file__).parents[2] / "tools" / "build_kernels.py"
needs_loops = pytest.mark.skipif(native.library() is None, reason="the loops are not compiled")


@pytest.fixture
def no_library(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: None)


@needs_loops
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("grid", "offsets"), [((150,), [(0,)]), ((12, 19), [(0, 0), (0, 3), (4, 0), (4, 3)]), ((5, 6, 7), [(0, 0, 0)])]
)
def test_compiled_products_equal_those_of_scipy(rng, dtype, grid, offsets):
    counts = sp.random_array((30, 40 * len(offsets)), density=0.1, format="csr", dtype=dtype, rng=0)
    log_h = rng.random((40, *grid)).astype(dtype)
    q = rng.random((30, prod(grid))).astype(dtype)
    results = []
    for kind in (SparseCounts, SparseProducts):
        bags = kind(counts, 40, offsets, grid)
        scores = bags.match(bags.prepare(log_h), slice(3, 25), np.empty((22, prod(grid)), dtype), Threads(2))
        canvas = bags.canvas(log_h)
        bags.paint(q, canvas, Threads(2))
        results.append((scores, bags.planes(canvas)))
    for compiled, expected in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, expected, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-5)


def test_without_loops_bags_are_multiplied_by_scipy(rng, no_library):
    few = sp.csr_array(rng.random((50, 400)) < 0.02).astype(float)
    assert isinstance(as_counts(few, 400, [(0, 0)], (4, 4), Tuning(small_product=0)), SparseProducts)


def test_a_fit_without_loops_ends_where_one_with_them_does(monkeypatch):
    X = sp.random_array((200, 600), density=0.05, format="csr", rng=0, data_sampler=lambda size: np.ones(size))
    model = cg.CountingGrid((16, 16), 4, anneal=(0.5, 1.5, 1.0), tol=1e3, dtype="float64", random_state=0)
    first = model.fit(X).score(X)
    monkeypatch.setattr(native, "library", lambda: None)
    assert model.fit(X).score(X) == pytest.approx(first, rel=1e-9)


def test_missing_loops_are_said_once(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "none.so")
    native.library.cache_clear()
    try:
        with pytest.warns(UserWarning, match="install it again where there is a C compiler"):
            assert native.library() is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert native.library() is None
    finally:
        native.library.cache_clear()


def test_a_missing_compiler_is_no_error(monkeypatch, tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("build_kernels", BUILD)
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    (tmp_path / "loops.c").write_text("")
    monkeypatch.setattr(build, "KERNELS", tmp_path)
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.compile_loops() is None
    assert "built without compiled loops" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["loops.c"]


def test_the_build_script_can_be_run():
    result = subprocess.run([sys.executable, BUILD], capture_output=True, text=True)
    assert (result.returncode == 0) == native.LIBRARY.is_file()


def test_rows_have_room_for_a_vector_and_do_not_alias():
    for width in (1, 16, 100, 4096):
        table = arrays.padded_rows(3, width, np.float32)
        assert native.is_padded(table)
        assert native.stride_of(table) * 4 // 64 % 2 == 1
    assert not native.is_padded(np.zeros((3, 17), np.float32))
