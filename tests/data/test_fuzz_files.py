"""Mutated files by the thousand: each is read, or refused with a message; none crashes, hangs or fills memory."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mutations
import sandbox
from countinggrids.data import container

KINDS = ["npy", *(f"npz {layout}" for layout in ("csr", "csc", "bsr", "coo", "dia"))]
OURS = ["model", "checkpoint", "texts", "codebook", "textons"]
OURS += ["classifier", "search", "tracker", "neighbors", "scores, compared", "clusters"]
KINDS += OURS
QUICK, MANY = 110, 700
"""Files of each kind; there are seventeen kinds."""
LONGEST = 10
"""Seconds that one reader may take."""
LARGEST = 10**9
"""Bytes of memory that the process may take at its peak."""


def fuzz(folder, kinds, first, last, seconds):
    """Run readers on mutated files in a process with limits; return its reports by kind, and where it ended."""
    folder.mkdir(parents=True)
    code = Path(__file__).with_name("fuzzed_files.py").read_text()
    done = sandbox.run(code, folder, first, last, *kinds, seconds=seconds)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    reports = {line["kind"]: line for line in lines if "faults" in line}
    end = f"ended with {done.returncode} after {lines[-1:]}: {done.stderr[-2000:]}"
    return {kind: reports.get(kind, {"faults": [end]}) for kind in kinds}


def fuzz_all(folder, first, last, seconds):
    """Distribute the kinds over two processes."""
    with ThreadPoolExecutor() as pool:
        halves = [pool.submit(fuzz, folder / str(i), KINDS[i::2], first, last, seconds) for i in range(2)]
        return {kind: report for half in halves for kind, report in half.result().items()}


def check(report, n_files):
    assert report["faults"] == []
    assert report["slowest"] < LONGEST
    assert report["peak"] < LARGEST
    assert report["read"] + report["refused"] >= n_files
    assert min(report["read"], report["refused"]) > n_files // 20
    assert report["kind"] not in OURS or report["signed"] > n_files // 2


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return fuzz_all(tmp_path_factory.mktemp("fuzz"), 0, QUICK, seconds=900)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused(reports, kind):
    check(reports[kind], QUICK)


@pytest.mark.slow
def test_many_more_mutated_files_are_read_or_refused(tmp_path):
    for report in fuzz_all(tmp_path / "fuzz", QUICK, MANY, seconds=3600).values():
        print(json.dumps(report | {"faults": len(report["faults"])}))
        check(report, MANY - QUICK)


def test_a_crash_a_hang_and_a_traceback_would_be_noticed(tmp_path):
    assert sandbox.run("import ctypes; ctypes.string_at(8)").returncode < 0
    assert "MemoryError" in sandbox.run("bytearray(2**33)").stderr
    assert re.search(
        "ended with 1 after .*ValueError", fuzz(tmp_path / "a", ["npy"], 0, "x", 60)["npy"]["faults"][0], re.DOTALL
    )
    good = {"kind": "model", "faults": [], "slowest": 1, "peak": 1e8, "signed": 60, "read": 50, "refused": 50}
    check(good, 100)
    for fault in ({"faults": ["x"]}, {"slowest": 11}, {"peak": 2e9}, {"read": 0}, {"signed": 50}):
        with pytest.raises(AssertionError):
            check(good | fault, 100)


@pytest.mark.parametrize("mutate", [mutations.resigned_bytes, mutations.resigned_header, mutations.resigned_anywhere])
def test_resigned_files_differ_and_match_their_digests(tmp_path, mutate):
    path, rng, n_signed = tmp_path / "x", np.random.default_rng(0), 0
    container.write(path, {"format": "table", "version": 1}, {"a": np.arange(300), "b": np.ones((3, 5))})
    whole = path.read_bytes()
    assert mutations.resigned(whole) == whole
    for _ in range(100):
        path.write_bytes(mutate(whole, rng))
        assert path.read_bytes() != whole or mutate is mutations.resigned_anywhere
        try:
            container.verify(path)
            n_signed += 1
        except ValueError as error:
            assert "does not match its digest" not in str(error) or mutate is mutations.resigned_anywhere  # noqa: PT017
    assert n_signed > 10 or mutate is mutations.resigned_header  # whose files are refused for what they say


def test_mutated_files_differ():
    rng = np.random.default_rng(0)
    assert sum(mutations.mutated(b"a" * 100, rng) == b"a" * 100 for _ in range(100)) < 20
    assert all(mutations.other_facts({"a": [1, {"b": 2}]}, rng) != {"a": [1, {"b": 2}]} for _ in range(20))
