"""Stepwise EM against EM on all bags: time to convergence, and held-out perplexity.

python benchmarks/stepwise.py [--case text|newsgroups] [--batch-sizes 500 1000]

Newsgroups: 20 Newsgroups, words in at least 20 training documents, every tenth training document held out.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

import countinggrids as cg
from common import table, text_bags
from countinggrids import datasets


def text():
    X = text_bags(0)[0]
    return X[:5000], X[5000:], {"grid": (32, 32), "window": 5}


def newsgroups():
    train = datasets.newsgroups(Path(os.environ["COUNTINGGRIDS_DATA"]) / "text").split("split")["train"].counts
    train = train[:, np.flatnonzero((train > 0).sum(axis=0) >= 20)]
    is_held_out = np.arange(train.shape[0]) % 10 == 0
    return train[~is_held_out], train[is_held_out], {"grid": (64, 64), "window": 8}


CASES = {"text": text, "newsgroups": newsgroups}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, default="text")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[500, 1000])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    train, test, shapes = CASES[options.case]()
    rows, base = [], None
    for size in [None, *options.batch_sizes]:
        model = cg.CountingGrid(**shapes, random_state=0)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(train, batch_size=size)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        base = base or (wall, cpu)
        times = [f"{wall:.0f}", f"{cpu:.0f}", f"{wall / base[0]:.2f}", f"{cpu / base[1]:.2f}"]
        rows.append([size or "all", f"{model.perplexity(test):.1f}", *times])
        print(*rows[-1], flush=True)
    table(
        f"{options.case}: {train.shape[0]} bags, {train.shape[1]} features, grid {shapes['grid']} (bar: 0.33)",
        ["bags an iteration", "held-out perplexity", "seconds", "CPU seconds", "of all bags'", "of their CPU"],
        rows,
    )


if __name__ == "__main__":
    main()
