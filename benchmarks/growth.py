"""Growth of time and memory of a fit: with bags, cells, features, non-zeros, window, sections and axes.

python benchmarks/growth.py [--plot growth.png]

Each quantity spans two decades where possible, with the others fixed. Times are of one iteration, shortest of
several after three warm-up iterations. Memory is the peak of a separate process beyond that before the fit.
An exponent of 1 means linear growth.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from common import Learner, best_of, peak, table
from countinggrids.core.geometry import Geometry

SMALL = {"bags": 300, "features": 300, "nonzeros": 5, "grid": (32, 32), "window": (4, 4), "sections": None}
"""Fit before the measurement, whose memory is the baseline."""
BASE = {"bags": 3000, "features": 1000, "nonzeros": 50, "grid": (32, 32), "window": (4, 4), "sections": None}
STEPS = {
    "bags": [({"bags": n}, n) for n in (1000, 3000, 10_000, 30_000, 100_000)],
    "cells": [({"grid": (n, n)}, n * n) for n in (10, 20, 32, 64, 100)],
    "features": [({"features": n}, n) for n in (300, 1000, 3000, 10_000, 30_000)],
    "non-zeros a bag": [({"nonzeros": n}, n) for n in (5, 16, 50, 160, 500)],
    "cells of the window": [({"window": (n, n)}, n * n) for n in (2, 4, 8, 16, 20)],
    "sections": [({"sections": (n, n), "window": (8, 8)}, n * n) for n in (1, 2, 4, 8)],
    "axes, 4096 cells": [
        ({"grid": grid, "window": window}, len(grid))
        for grid, window in (((4096,), (64,)), ((64, 64), (8, 8)), ((16, 16, 16), (4, 4, 4)))
    ],
}


def bags_of(case):
    """Draw bags with about this many different features each, equally in every section."""
    rng = np.random.default_rng(0)
    n_sections = int(np.prod(case["sections"] or 1))
    n_columns = case["features"] * n_sections
    n = case["bags"] * case["nonzeros"]
    rows, columns = rng.integers(case["bags"], size=n), rng.integers(n_columns, size=n)
    return sp.csr_array((np.ones(n, np.float32), (rows, columns)), shape=(case["bags"], n_columns))


def measured(case):
    """Return the seconds of an iteration, and the megabytes that a fit adds to the peak."""
    Learner(bags_of(SMALL), Geometry.of(SMALL["grid"], SMALL["window"])).iterate()
    X = bags_of(case)
    geometry = Geometry.of(case["grid"], case["window"], case["sections"])
    before = peak()
    learner = Learner(X, geometry)
    learner.iterate(3)
    seconds = best_of(learner.iterate, 3)
    return seconds, peak() - before


def apart(case):
    """Measure in a separate process."""
    made = subprocess.run([sys.executable, __file__, "--case", json.dumps(case)], capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(made.stderr)
    return json.loads(made.stdout.splitlines()[-1])


def exponent(sizes, values):
    """Fit the exponent to the upper half of the sizes, where constants matter less."""
    upper = slice(len(sizes) // 2, None)
    return float(np.polyfit(np.log(sizes[upper]), np.log(np.maximum(values[upper], 1e-9)), 1)[0])


def draw(found, path):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(14, 6), layout="constrained", dpi=110)
    FigureCanvasAgg(made)
    panels = made.subplots(2, len(found), sharey="row")
    for column, (name, (sizes, seconds, megabytes)) in zip(panels.T, found.items(), strict=True):
        for axes, values, what in zip(
            column, (1e3 * np.array(seconds), megabytes), ("milliseconds", "megabytes"), strict=True
        ):
            axes.loglog(sizes, np.maximum(values, 1), marker="o", color="C0" if what == "milliseconds" else "C1")
            if name.startswith("axes"):
                axes.set_xscale("linear")
                axes.set_xticks(sizes)
            if axes is panels[0, 0] or axes is panels[1, 0]:
                axes.set_ylabel(what)
        column[1].set_xlabel(name)
    made.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--case", type=json.loads, help="measure one case and print it; for the script itself")
    options = parser.parse_args()
    if options.case:
        case = {name: tuple(value) if isinstance(value, list) else value for name, value in options.case.items()}
        print(json.dumps(measured(case)))
        return
    found, rows = {}, []
    for name, steps in STEPS.items():
        sizes = [size for _, size in steps]
        seconds, megabytes = zip(*(apart(BASE | changes) for changes, _ in steps), strict=True)
        found[name] = (sizes, seconds, megabytes)
        slope = "" if name.startswith("axes") else f"{exponent(np.array(sizes), np.array(seconds)):.2f}"
        rows.append([name, " ".join(map(str, sizes)), " ".join(f"{1e3 * each:.0f}" for each in seconds), slope,
                     " ".join(f"{each:.0f}" for each in megabytes)])  # fmt: skip
        print(*rows[-1], flush=True)
    base = ", ".join(f"{name} {value}" for name, value in BASE.items() if value)
    table(f"One iteration; {base}", ["quantity", "sizes", "milliseconds", "exponent", "peak, MB"], rows)
    if options.plot:
        draw(found, options.plot)


if __name__ == "__main__":
    main()
