"""What the number of candidates on the small grid gains in held-out score, and how early the best one is known.

python benchmarks/candidates.py [--seeds 8] [--first 100] [--numbers 1 2 4 8 16]

The bags are the dense ones of `heldout.py`. Candidates that are behind after a part of their iterations could be
dropped there: the second table says how often the best one at the end would have been dropped.
"""

import argparse
import time

import numpy as np

import countinggrids as cg
from common import dense_bags, table
from countinggrids.training import initialization
from heldout import share

FRACTIONS = (0.25, 0.5, 0.75)


def fitted(X, n_candidates, seed):
    """Fit with a number of candidates; return the model, the CPU seconds and the objectives of every candidate."""
    before, histories = initialization.N_CANDIDATES, {}

    def note(now):
        if now.stage == "candidates":
            histories.setdefault(now.candidate, []).append(now.objective)

    initialization.N_CANDIDATES = n_candidates
    try:
        began = time.process_time()
        model = cg.CountingGrid((32, 32), 8, random_state=seed).fit(X, callback=note)
        return model, time.process_time() - began, list(histories.values())
    finally:
        initialization.N_CANDIDATES = before


def survives(histories, fraction):
    """Return whether the best candidate is in the better half after a fraction of the shortest run."""
    number = int(fraction * min(map(len, histories)))
    ranked = np.argsort([-history[number - 1] for history in histories])
    return int(np.argmax([history[-1] for history in histories])) in ranked[: len(histories) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--numbers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    options = parser.parse_args()
    shares, seconds, kept = {n: [] for n in options.numbers}, {n: [] for n in options.numbers}, []
    for seed in range(options.first, options.first + options.seeds):
        X, h = dense_bags(seed)
        for n in options.numbers:
            model, spent, histories = fitted(X[:2000], n, seed)
            shares[n].append(share(model, X[:2000], X[2000:], h))
            seconds[n].append(spent)
            if n == max(options.numbers):
                kept.append([survives(histories, fraction) for fraction in FRACTIONS])
            print(f"  seed {seed}, {n} candidates: {shares[n][-1]:.2%}, {spent:.1f} s", flush=True)
    most = np.array(shares[max(options.numbers)])
    rows = []
    for n in options.numbers:
        behind = most - shares[n]
        error = behind.std(ddof=1) / len(behind) ** 0.5
        rows.append([n, f"{np.mean(shares[n]):.1%}", f"{-behind.mean():+.1%} +- {error:.1%}",
                     f"{np.mean(seconds[n]):.1f} s"])  # fmt: skip
    header = ["candidates", "held-out score", f"against {max(options.numbers)}", "CPU"]
    table(f"Number of candidates, dense bags, {options.seeds} seeds from {options.first}", header, rows)
    header = ["after this part of the shortest run", "the best at the end is in the better half"]
    rows = [
        [f"{f:.0%}", f"{sum(each)} of {len(each)}"] for f, each in zip(FRACTIONS, zip(*kept, strict=True), strict=True)
    ]
    table(f"Objectives of {max(options.numbers)} candidates", header, rows)


if __name__ == "__main__":
    main()
