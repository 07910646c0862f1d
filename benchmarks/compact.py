"""Size and loss of compact forms of a model: perplexity of held-out bags against that of the whole model.

    COUNTINGGRIDS_DATA=... python benchmarks/compact.py [texts2000|texts5000|ap ...]

The first form is that of `save(compact=True)`, written and read. The others are computed in memory, with the sizes that
their arrays would have: float16, and sparse in float16 above a floor along the smallest probability of each feature.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import countinggrids as cg
from against import bags
from common import table
from memory import text_like

FLOORS = (1.2, 2.0)


def compact(model):
    """Write the compact form and read it; return pi and megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cg"
        model.save(path, compact=True)
        return cg.load(path).pi_, path.stat().st_size / 1e6


def halved(model):
    """Round to float16; return pi and megabytes."""
    return normalized(model.pi_.astype(np.float16)), model.pi_.size * 2 / 1e6


def sparse(model, factor):
    """Keep what is above a floor by a factor; return pi and megabytes, with 16-bit numbers of features."""
    floor = model.pi_.min(axis=(0, 1))
    floor = floor * np.median(model.pi_ / floor, axis=-1, keepdims=True)
    is_kept = model.pi_ > factor * floor
    rest = np.where(is_kept, 0, model.pi_).sum(axis=-1, keepdims=True)
    low = np.where(is_kept, 0, floor)
    low = low * (rest / np.maximum(low.sum(axis=-1, keepdims=True), 1e-30))
    return normalized(np.where(is_kept, model.pi_.astype(np.float16), low)), is_kept.sum() * 4 / 1e6


def normalized(pi):
    pi = pi.astype(np.float64)
    return (pi / pi.sum(axis=-1, keepdims=True)).astype(np.float32)


def measured(case):
    """Fit a case; return a row for each form."""
    if case == "texts2000":
        X = text_like(2500, 3000, 24, 5)
        train, test, grid, window = X[:2000], X[2000:], (24, 24), 5
    else:
        train, test, _, grid, window = bags(case)
    model = cg.CountingGrid(grid, window, random_state=0).fit(train)
    whole, before, cells = model.pi_, model.perplexity(test), model.predict(test)
    rows = [[case, "whole", f"{whole.nbytes / 1e6:.1f} MB", f"{before:.2f}", "", ""]]
    forms = {"compact": compact, "float16": halved}
    forms |= {f"sparse above {f} x floor": lambda model, f=f: sparse(model, f) for f in FLOORS}
    for name, form in forms.items():
        model.pi_ = whole
        began = time.perf_counter()
        model.pi_, size = form(model)
        seconds, after = time.perf_counter() - began, model.perplexity(test)
        same = np.mean(model.predict(test) == cells)
        rows.append([case, name, f"{size:.1f} MB", f"{after:.2f}", f"{after / before - 1:+.4%}", f"{same:.1%}"])
        print(f"  {case}, {name}: {size:.1f} MB, {after:.3f} ({before:.3f}), {seconds:.1f} s", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=["texts2000", "texts5000", "ap", []], metavar="case")
    cases = parser.parse_args().cases or [
        "texts2000",
        "texts5000",
        *(["ap"] if "COUNTINGGRIDS_DATA" in os.environ else []),
    ]
    header = ["bags", "form of pi", "size", "held-out perplexity", "change", "same cell"]
    table("Compact forms of models, default fits", header, [row for case in cases for row in measured(case)])


if __name__ == "__main__":
    main()
