"""Learning from bags on disk: resident memory, and speed against the same bags in memory.

    python benchmarks/outofcore.py [--bags 1000000] [--features 50000] [--iterations 2] [--componential]

With --componential, a default fit of a componential grid from disk, and the weights of some bags.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import countinggrids as cg
from common import peak, table
from countinggrids.data import collection_file, readers
from countinggrids.data.items import Items
from countinggrids.features import Vocabulary

N_PLACED = 20_000
"""Bags whose weights are computed after a fit, to time that."""


def write(path, n_bags, n_features, per_bag=100):
    """Write a collection of bags with about so many different words each."""
    rng = np.random.default_rng(0)
    ends = np.concatenate([[0], np.cumsum(rng.integers(per_bag // 2, per_bag * 3 // 2, n_bags, dtype=np.int64))])
    columns = (n_features ** rng.random(int(ends[-1]), dtype=np.float32) - 1).astype(np.int32)
    counts = sp.csr_array((np.ones(columns.size, np.float32), columns, ends), shape=(n_bags, n_features), copy=False)
    words, items = Vocabulary("words", tuple(f"w{i}" for i in range(n_features))), Items({"number": np.arange(n_bags)})
    collection_file.write(path, collection_file.Contents(counts, words, items, (1,), []))


def fit(path, is_held, n_iterations):
    """Fit in this process; return seconds per bag and iteration, and peak resident memory in MB."""
    warnings.simplefilter("ignore")
    options = {"anneal": None, "tol": 0.0, "random_state": 0}
    small = sp.csr_array(readers.load(path)[:3000])
    cg.CountingGrid((32, 32), 5, max_iter=1, **options).fit(small)
    X = readers.load(path)
    if is_held:
        X = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    times = [time.perf_counter()]
    model = cg.CountingGrid((32, 32), 5, max_iter=n_iterations, **options)
    model.fit(X if is_held else path, callback=lambda _: times.append(time.perf_counter()))
    seconds = float(np.diff(times[1:]).min()) if n_iterations > 1 else times[1] - times[0]
    return {"seconds": seconds / X.shape[0], "megabytes": peak(), "objective": model.history_[-1]}


def fit_componential(path):
    """Fit a componential grid from disk, and compute the weights of some bags; return times and peak memory in MB."""
    batches = []
    began = time.perf_counter()
    model = cg.ComponentialGrid((32, 32), 4, random_state=0).fit(path, callback=lambda _: batches.append(1))
    fitted = time.perf_counter() - began
    some = sp.csr_array(readers.load(path)[:N_PLACED])
    began = time.perf_counter()
    used = float(model.usage(some).sum())
    whole = time.perf_counter() - began
    return {
        "fit": fitted,
        "batches": len(batches),
        "microseconds": 1e6 * whole / N_PLACED,
        "megabytes": peak(),
        "sum": used,
    }


def measure(path, is_held, n_iterations):
    """Fit in a process of its own."""
    return in_process(f"fit({str(path)!r}, {is_held}, {n_iterations})")


def in_process(call):
    """Call a function of this file in a process of its own."""
    code = f"import json, outofcore; print(json.dumps(outofcore.{call}))"
    run = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True)
    run.check_returncode()
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--componential", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bags.cg"
        write(path, options.bags, options.features)
        if options.componential:
            found = in_process(f"fit_componential({str(path)!r})")
            rows = [
                [f"{found['fit']:.0f} s", found["batches"], f"{found['microseconds']:.0f}", f"{found['megabytes']:.0f}"]
            ]
            title = f"Componential grid 32x32/4x4, {options.bags} bags on disk, {options.features} features"
            table(title, ["fit", "batches", "microseconds per bag, weights", "peak MB"], rows)
            return
        found = {name: measure(path, name == "in memory", options.iterations) for name in ("on disk", "in memory")}
        size = path.stat().st_size / 2**20
    assert found["on disk"]["objective"] == found["in memory"]["objective"]
    rows = [[name, f"{each['seconds'] * 1e6:.1f}", f"{each['megabytes']:.0f}"] for name, each in found.items()]
    speed = found["in memory"]["seconds"] / found["on disk"]["seconds"]
    table(
        f"{options.bags} bags ({size:.0f} MB), {options.features} features, 32x32 (limits: 2500 MB, 70% of the speed)",
        ["bags", "microseconds per bag", "peak MB"],
        rows,
    )
    print(f"  speed from disk relative to memory: {100 * speed:.0f}%")


if __name__ == "__main__":
    main()
