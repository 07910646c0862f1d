"""Speedup of whole default fits by each optimization: each is switched off in turn, in a separate process.

python benchmarks/ablation.py [case ...]

Cases: scene, class, dense2000, dense16000, texts5000, news (needs COUNTINGGRIDS_DATA), componential. An optimization
that gains less than 1.25 x on every case is removed, together with its code and tests.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import countinggrids as cg
from common import dense_bags, table, text_bags
from countinggrids.core import pieces
from countinggrids.kernels import native, tuning
from countinggrids.reproduce import demo

REPEATS = {"scene": 3, "class": 3, "dense2000": 3}
"""Runs of the short cases; of the others there is one."""


def scene():
    """The 2x2 bags of the demo."""
    _, X = demo.cut(demo.photo_scene(), 0)
    return X, cg.CountingGrid(demo.GRID, demo.WINDOW, demo.SECTIONS, random_state=0)


def one_class():
    """A grid a class, as in `GridClassifier`: 100 bags of 100 tokens in 2x2 sections."""
    X = np.random.default_rng(0).dirichlet(np.full(200, 0.1), (100, 4)).reshape(100, -1) * 25
    return X.astype(np.float32), cg.CountingGrid((12, 12), 8, 2, random_state=0)


def news():
    """20 Newsgroups, training part, the 7945 most frequent words after the first 50."""
    X = sp.csr_array(sp.load_npz(Path(os.environ["COUNTINGGRIDS_DATA"]) / "text/20news_train_bow.npz"))
    frequency = np.asarray((X > 0).sum(axis=0)).ravel()
    words = np.sort(np.argsort(-frequency, kind="stable")[50 : 50 + 7945])
    return X[:, words].astype(np.float32), cg.CountingGrid((64, 64), 8, random_state=0)


CASES = {
    "scene": scene,
    "class": one_class,
    "dense2000": lambda: (dense_bags(0, 2000)[0], cg.CountingGrid((32, 32), 8, random_state=0)),
    "dense16000": lambda: (dense_bags(0, 16_000)[0], cg.CountingGrid((32, 32), 8, random_state=0)),
    "texts5000": lambda: (text_bags(0, 5000)[0], cg.CountingGrid((32, 32), 5, random_state=0)),
    "news": news,
    "componential": lambda: (text_bags(0, 5000)[0], cg.ComponentialGrid((32, 32), 5, random_state=0)),
}


def no_sparse_products():
    _retune(dense_from=0.0)


def no_feature_pieces():
    pieces.PLANE_ENTRIES = 2**60


def no_compiled_loops():
    native.library = lambda: None


SWITCHES = {
    "sparse products": no_sparse_products,
    "pieces of features": no_feature_pieces,
    "compiled loops": no_compiled_loops,
}


_in_force = ExitStack()
"""Keeps thresholds in force until the process ends."""


def _retune(**thresholds):
    _in_force.enter_context(tuning.use(tuning.Tuning(**thresholds)))


def measure(case, switch):
    """Fit once, in this process; print the CPU seconds and the objective as JSON."""
    X, model = CASES[case]()
    if switch:
        SWITCHES[switch]()
    began = time.process_time()
    model.fit(X)
    print(json.dumps([time.process_time() - began, float(model.history_[-1])]))


def cpu_seconds(case, switch):
    """Fit in a new process; return the CPU seconds, compiling included."""
    command = [sys.executable, __file__, "--measure", case, switch]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])[0]


def ablate(case):
    """Time a case with everything on and with each optimization off, in turns."""
    names = ["", *SWITCHES]
    times = {name: [] for name in names}
    for _ in range(REPEATS.get(case, 1)):
        for name in names:
            times[name].append(cpu_seconds(case, name))
    base = np.median(times[""])
    row = [f"{base:.1f} s", *(f"{np.median(times[name]) / base:.2f}" for name in SWITCHES)]
    print(f"  {case}: {' '.join(row)}", file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure(*sys.argv[-2:])
    else:
        cases = sys.argv[1:] or [name for name in CASES if name != "news" or os.environ.get("COUNTINGGRIDS_DATA")]
        rows = [[case, *ablate(case)] for case in cases]
        table("CPU time of a default fit, over everything on", ["case", "everything on", *SWITCHES], rows)
