"""Learning on a Dask cluster: what an iteration costs over plain threads, what a second worker saves, what moves.

python benchmarks/cluster.py [--bags 5000] [--many 120000] [--turns 4] [--quiet]

All clusters are on this machine, one at a time: the housekeeping of an idle one takes a tenth of a core. Those that are
compared take turns and start from the same grid, so that what else the machine does falls on all of them.
"""

import argparse
import time
import warnings
from contextlib import ExitStack
from math import ceil, log2, prod
from pathlib import Path

import dask
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

import countinggrids as cg
from common import Learner, table, text_bags
from countinggrids import cluster, sources
from countinggrids.engine import FAN, HIGHER
from countinggrids.geometry import Geometry

MODEL = cg.CountingGrid((32, 32), (5, 5))
GEOMETRY = Geometry.of((32, 32), (5, 5))
FIT = 100
"""Iterations that are timed together: about as many as a fit makes on the full grid."""
QUIET = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
}
"""Settings of Dask with which it looks after itself less often; docs/cluster.md tells of them."""
MACHINES, THREADS, NETWORK = 64, 16, 1.25e9
"""A cluster to reckon for: machines, threads of each, bytes a second that each sends or receives (10 Gbit/s)."""


class Spread(Learner):
    """A learner whose bags lie on the workers of a cluster of its own, which ends with the stack."""

    def __init__(self, X, stack, **how):
        super().__init__(X, GEOMETRY)
        where = {} if how.get("processes") is False else {"host": "127.0.0.1"}
        local = LocalCluster(dashboard_address="127.0.0.1:0", **where, **how)
        self.client = stack.enter_context(Client(stack.enter_context(local)))
        blocks = [dask.delayed(X[run]) for run in sources.runs_of(*X.shape)]
        with self.client.as_current():
            self.bags = cluster.read(MODEL, blocks, is_fitting=True)
            self.shares = self.bags.shares(np.ones(X.shape[0], np.float32), X.shape[1], GEOMETRY)


def in_turns(X, kinds, turns, n):
    """Give the time of an iteration of each kind of learner, from the same grid, and the bytes that moved.

    A kind is the cluster's options, or None for threads without one. In every turn n iterations in a row are timed
    together, for the grid goes to the workers at first and comes back from them at last; the quickest turn counts.
    """
    plain = Learner(X, GEOMETRY)
    plain.iterate(5)
    start = plain.grid
    times, moved = {name: [] for name in kinds}, {name: [] for name in kinds}
    for _ in range(turns):
        for name, how in kinds.items():
            with ExitStack() as stack:
                learner = plain if how is None else Spread(X, stack, **how)
                for is_timed in (False, True):  # the first time compiles, and brings the bags to their workers
                    learner.grid = start
                    before, began = received(), time.perf_counter()
                    learner.iterate(n if is_timed else 3)
                times[name].append((time.perf_counter() - began) / n)
                moved[name].append((received() - before) / n)
    return {name: min(each) for name, each in times.items()}, {name: min(each) for name, each in moved.items()}


def received():
    """Tell how many bytes this machine has sent to itself; 0 where it does not say."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.strip().startswith("lo:")), 0)


def overhead(n_bags, turns):
    X, _ = text_bags(0, n_bags)
    worker = {"n_workers": 1, "threads_per_worker": 2}
    kinds = {
        "two threads, no cluster": None,
        "one worker of two threads, in this process": {**worker, "processes": False},
        "one worker of two threads, a process": worker,
    }
    seconds, moved = in_turns(X, kinds, turns, FIT)
    plain = next(iter(seconds.values()))
    table(
        f"{n_bags} bags of text, 5000 features, 32x32, window 5x5 (bar: 15% over threads)",
        ["where", "ms an iteration", "over threads", "MB moved"],
        [
            [name, f"{1e3 * s:.0f}", f"{100 * (s / plain - 1):.0f}%", f"{moved[name] / 1e6:.0f}"]
            for name, s in seconds.items()
        ],
    )


def scaling(n_bags, turns):
    """Give the seconds that one thread takes for a bag."""
    sets = range(-(-n_bags // 10_000))  # few at a time, for they are drawn dense
    X = sp.csr_array(sp.vstack([text_bags(seed, min(n_bags, 10_000))[0] for seed in sets])[:n_bags])
    X = X[np.random.default_rng(0).permutation(n_bags)]  # or one worker would have the sets that take longer
    kinds = {f"{n} of one thread": {"n_workers": n, "threads_per_worker": 1} for n in (1, 2)}
    seconds, moved = in_turns(X, kinds, turns, 4)
    one = next(iter(seconds.values()))
    table(
        f"{n_bags} bags, {len(sources.runs_of(*X.shape))} shares (bar: two workers 1.7 times one)",
        ["workers", "ms an iteration", "times one", "MB moved"],
        [[name, f"{1e3 * s:.0f}", f"{one / s:.2f}", f"{moved[name] / 1e6:.0f}"] for name, s in seconds.items()],
    )
    return one / n_bags, X.nnz / n_bags


def billion(seconds_a_bag, entries_a_bag, n_bags=10**9):
    grid = 5000 * prod(GEOMETRY.grid) * 4
    higher = ceil(log2(sources.MOST_SHARES / FAN) / log2(HIGHER))
    hops = ceil(log2(MACHINES)) + FAN - 1 + higher * (HIGHER - 1) + 1
    work, moves = n_bags * seconds_a_bag / (MACHINES * THREADS), hops * grid / NETWORK
    rows = [
        ["bags in memory, GB a machine", f"{n_bags * entries_a_bag * 8 / MACHINES / 1e9:.1f}"],
        ["grid, MB", f"{grid / 1e6:.0f}"],
        ["work, seconds an iteration", f"{work:.1f}"],
        ["moves, seconds an iteration", f"{moves:.1f}"],
        ["100 iterations, minutes", f"{100 * (work + moves) / 60:.0f}"],
    ]
    title = f"reckoned: {n_bags} such bags on {MACHINES} machines of {THREADS} threads, 10 Gbit/s"
    table(title, ["what", "figure"], rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bags", type=int, default=5000)
    parser.add_argument("--many", type=int, default=120_000)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--quiet", action="store_true", help="have Dask look after itself less often")
    options = parser.parse_args()
    dask.config.set(QUIET if options.quiet else {})
    warnings.filterwarnings("ignore", message="Sending large graph")
    overhead(options.bags, options.turns)
    billion(*scaling(options.many, options.turns))


if __name__ == "__main__":
    main()
