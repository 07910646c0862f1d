"""Held-out log-likelihood on a scale from one unigram distribution (0%) to the true model (100%).

python benchmarks/heldout.py [--only dense|text] [--seeds 3] [--first 0]
"""

import argparse
import time

import numpy as np

import countinggrids as cg
from common import dense_bags, table, text_bags

SETS = {
    "dense": (dense_bags, 2000, 8, "target 68%, goal 75%, published code 65%"),
    "text": (text_bags, 5000, 5, "target 54%, goal 60%, published code 44%"),
}


def share(model, train, test, h):
    """Return the held-out score: 0 is the mean histogram of the training bags, 1 the true windows."""
    totals = np.asarray(train.sum(axis=0)).ravel() + 0.01
    unigram = float((test @ np.log(totals / totals.sum())).sum())
    joint = test @ np.log(np.maximum(h.T, 1e-300))
    best = joint.max(axis=1, keepdims=True)
    truth = float((best[:, 0] + np.log(np.exp(joint - best).mean(axis=1))).sum())
    return (model.score_samples(test).sum() - unigram) / (truth - unigram)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(SETS), action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    for name in arguments.only or SETS:
        make, n_train, window, marks = SETS[name]
        shares, rows = [], []
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            X, h = make(seed)
            began = time.perf_counter()
            model = cg.CountingGrid((32, 32), window, random_state=seed, verbose=1).fit(X[:n_train])
            shares.append(share(model, X[:n_train], X[n_train:], h))
            rows.append([seed, f"{shares[-1]:.1%}", model.n_iter_, f"{time.perf_counter() - began:.0f} s"])
        rows.append(["mean", f"{np.mean(shares):.1%} +- {np.std(shares):.1%}", "", ""])
        table(f"Held-out, {name} ({marks}); default settings", ["seed", "score", "iterations", "time"], rows)


if __name__ == "__main__":
    main()
