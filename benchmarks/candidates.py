"""What candidates on the small grid gain in held-out score and cost in time, and when the best one is known.

    python benchmarks/candidates.py [--bags dense] [--seeds 4] [--first 100] [--settings 8,1.02,5000,500 ...]

A setting is the number of candidates, the growth of beta while the layout forms, the number of bags that candidates are
trained on, and the bags of a batch (0: all of them in every iteration). The bags are those of `heldout.py`. The second
table says how many candidates are ahead of the one that is best at the end, while beta grows: those that are behind
early could be dropped, if that told anything.
"""

import argparse
import time
from unittest import mock

import numpy as np

import countinggrids as cg
from common import table
from countinggrids.core import schedule
from countinggrids.training import initialization
from heldout import SETS, share

DEFAULT = {
    bags: (number, schedule.BATCH_RATE, initialization.CANDIDATE_BAGS, initialization.CANDIDATE_BATCH)
    for bags, number in (("dense", initialization.N_CANDIDATES), ("text", initialization.N_LARGE_CANDIDATES))
}
OTHERS = ((8, 1.01, 5000, 0), (1, 1.02, 5000, 500), (4, 1.02, 5000, 500), (8, 1.02, 5000, 500), (4, 1.02, 5000, 250))
BETAS = (1.2, 1.5, 2.0, 3.0, 4.7, 6.0)
"""Inverse temperatures, in units of the critical one, at which candidates are ranked."""


def fitted(X, window, setting, seed):
    """Fit with a setting; return the model, the CPU seconds, and (beta, objective) of every candidate's iterations."""
    paths = {}

    def note(now):
        if now.stage == "candidates":
            paths.setdefault(now.candidate, []).append((now.beta, now.objective))

    number, rate, n_bags, batch_size = setting
    changed = {
        "N_CANDIDATES": number,
        "N_LARGE_CANDIDATES": number,
        "CANDIDATE_BAGS": n_bags,
        "CANDIDATE_BATCH": batch_size or n_bags,
        "FEWEST_BATCHES": 4 if batch_size else 2,
    }
    growth = {"BATCH_RATE" if batch_size else "RATE": rate}
    with mock.patch.multiple(initialization, **changed), mock.patch.multiple(schedule, **growth):
        began = time.process_time()
        model = cg.CountingGrid((32, 32), window, random_state=seed).fit(X, callback=note)
        return model, time.process_time() - began, [np.array(path) for path in paths.values()]


def ranks(paths):
    """Return how many candidates are ahead of the one that is best at the end, at each of `BETAS`."""
    best, found = int(np.argmax([path[-1, 1] for path in paths])), []
    for times in BETAS:
        values = [path[np.searchsorted(path[:, 0], times * path[0, 0]).clip(0, len(path) - 1), 1] for path in paths]
        found.append(sum(value > values[best] for value in values))
    return found


def parsed(text):
    """Return a setting from its form on the command line."""
    number, rate, n_bags, batch_size = text.split(",")
    return int(number), float(rate), int(n_bags), int(batch_size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bags", choices=SETS, default="dense")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--settings", type=parsed, nargs="+")
    options = parser.parse_args()
    settings = options.settings or list(dict.fromkeys([DEFAULT[options.bags], *OTHERS]))
    make, n_train, window, _ = SETS[options.bags]
    seeds = range(options.first, options.first + options.seeds)
    results, places = {setting: [] for setting in settings}, []
    for seed in seeds:
        X, h = make(seed)
        for setting in settings:
            model, seconds, paths = fitted(X[:n_train], window, setting, seed)
            results[setting].append((share(model, X[:n_train], X[n_train:], h), seconds))
            if setting == settings[0]:
                places.append([seed, *ranks(paths)])
            print(f"  seed {seed}, {setting}: {results[setting][-1][0]:.1%}, {seconds:.1f} s", flush=True)
    rows = []
    for setting, runs in results.items():
        scores, seconds = zip(*runs, strict=True)
        rows.append([*setting, f"{np.mean(scores):.1%}", " ".join(f"{100 * score:.1f}" for score in scores),
                     f"{np.mean(seconds):.1f} s"])  # fmt: skip
    header = ["candidates", "growth of beta", "bags", "batch", "held-out score", "seeds", "CPU"]
    table(f"Candidates, {options.bags}, seeds from {options.first}", header, rows)
    title = f"Candidates ahead of the best one, of {settings[0][0]}, by beta over its critical value"
    table(title, ["seed", *BETAS], places)


if __name__ == "__main__":
    main()
