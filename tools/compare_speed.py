"""Time whole fits of two source trees in turns: python tools/compare_speed.py OLD/src NEW/src [--alert 1.25]

Each round runs both trees in processes of their own, one after the other, so that a machine that slows down or speeds
up meanwhile does it to both. Exits with 1 if a fit of the new tree takes longer than the alert threshold allows.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

FITS = {
    "dense": "(rng.random((n, 200)) ** 8 * 20).round(), dict(grid=(24, 24), window=(6, 6))",
    "sparse": "sp.random_array((2 * n, 3000), density=0.02, rng=rng).ceil(), dict(grid=(24, 24), window=(5, 5))",
    "sections": "(rng.random((n, 4 * 50)) ** 8 * 20).round(), dict(grid=(16, 16), window=(6, 6), sections=(2, 2))",
}
"""Bags and options of each fit, as Python expressions."""
TIMED = """
import sys, time
import numpy as np, scipy.sparse as sp
import countinggrids as cg

def timed(n):
    rng = np.random.default_rng(0)
    X, options = {}
    began = time.perf_counter()
    cg.CountingGrid(**options, max_iter=60, random_state=0).fit(X)
    return time.perf_counter() - began

timed(20)  # compiles
print(timed(int(sys.argv[1])))
"""


def seconds(tree: Path, name: str, n_bags: int) -> float:
    """Return the time of one fit of a source tree, without imports and compilation."""
    environment = os.environ | {"PYTHONPATH": str(tree.resolve())}
    command = [sys.executable, "-W", "ignore", "-c", TIMED.replace("{}", FITS[name]), str(n_bags)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def compare(old: Path, new: Path, name: str, rounds: int, n_bags: int) -> dict[str, float]:
    """Return the median times of both trees, and the median of the ratios of each round."""
    pairs = [(seconds(old, name, n_bags), seconds(new, name, n_bags)) for _ in range(rounds)]
    olds, news = zip(*pairs, strict=True)
    ratio = statistics.median(after / before for before, after in pairs)
    return {"old": statistics.median(olds), "new": statistics.median(news), "ratio": ratio}


def main() -> int:
    """Compare, print a table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="folder that contains the package to compare with")
    parser.add_argument("new", type=Path, help="folder that contains the package to check")
    parser.add_argument("--alert", type=float, default=1.25, help="largest ratio of the times, new to old")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bags", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="file for the result")
    options = parser.parse_args()
    found = {name: compare(options.old, options.new, name, options.rounds, options.bags) for name in FITS}
    print(f"{'fit':12}{'old, s':>10}{'new, s':>10}{'new / old':>12}")
    for name, each in found.items():
        print(f"{name:12}{each['old']:10.3f}{each['new']:10.3f}{each['ratio']:12.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps({"alert": options.alert, "fits": found}, indent=1) + "\n")
    slower = [name for name, each in found.items() if each["ratio"] > options.alert]
    if slower:
        print(f"slower than --alert {options.alert} allows: {', '.join(slower)}", file=sys.stderr)
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
