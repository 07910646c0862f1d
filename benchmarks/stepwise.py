"""Stepwise EM and EM on all bags: time to convergence, and time until the same held-out perplexity.

python benchmarks/stepwise.py [--case text|newsgroups] [--batch-sizes 500 1000] [--seed 0]

Newsgroups: 20 Newsgroups, words in at least 20 training documents, every tenth training document held out.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np

import countinggrids as cg
from common import Clock, as_fitted, table, text_bags
from countinggrids import datasets


def text(seed):
    X = text_bags(seed)[0]
    return X[:5000], X[5000:], {"grid": (32, 32), "window": 5}


def newsgroups(_):
    train = datasets.newsgroups(Path(os.environ["COUNTINGGRIDS_DATA"]) / "text").split("split")["train"].counts
    train = train[:, np.flatnonzero((train > 0).sum(axis=0) >= 20)]
    is_held_out = np.arange(train.shape[0]) % 10 == 0
    return train[~is_held_out], train[is_held_out], {"grid": (64, 64), "window": 8}


CASES = {"text": text, "newsgroups": newsgroups}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, default="text")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--seed", type=int, default=0, help="of the fits, and of the texts that are drawn")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    train, test, shapes = CASES[options.case](options.seed)
    rows, whole = [], None
    for size in [None, *options.batch_sizes]:
        clock = fitted(train, test, shapes, size, options.seed)
        whole = whole or clock
        seconds = clock.until(whole.points[-1][1])
        rows.append(
            [size or "all", f"{clock.points[-1][1]:.1f}", f"{clock.spent:.0f}",
             *(["never", ""] if seconds is None else [f"{seconds:.0f}", f"{seconds / whole.spent:.2f}"])]
        )  # fmt: skip
    table(
        f"{options.case}: {train.shape[0]} bags, {train.shape[1]} features, grid {shapes['grid']} (target: 0.33)",
        ["bags an iteration", "perplexity at the end", "seconds", "until that of all bags", "over all bags' seconds"],
        rows,
    )


def fitted(train, test, shapes, batch_size, seed):
    """Fit, and record the held-out perplexity at intervals once beta is one, outside of the measured time."""
    clock = Clock(f"batches of {batch_size}" if batch_size else "all bags")

    def look(iteration):
        if iteration.stage == "learning" and iteration.beta >= 1 and iteration.number % 3 == 0:
            clock.note(lambda: as_fitted(iteration, shapes["window"]).perplexity(test))

    model = cg.CountingGrid(**shapes, batch_size=batch_size, random_state=seed).fit(train, callback=look)
    clock.note(lambda: model.perplexity(test))
    return clock


if __name__ == "__main__":
    main()
