"""Overhead of Dask with one worker over threads, and speedup by a second worker.

python benchmarks/cluster.py [--quiet] [--direct] [--bags 5000] [--many 120000]

Backends take turns in one process, so that other load on the machine affects all of them alike.
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
from countinggrids.backends import open_bags
from countinggrids.backends.base import FAN, HIGHER
from countinggrids.core.geometry import Geometry
from countinggrids.data.chunks import MOST_CHUNKS, chunk_rows

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
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
}
"""Settings of Dask with less housekeeping, and workers that keep their memory; see docs/cluster.md."""
MACHINES, THREADS, NETWORK = 64, 16, 1.25e9
"""A cluster to extrapolate to: machines, threads of each, bytes per second that each transfers (10 Gbit/s)."""


class DaskLearner(Learner):
    """A learner whose bags are on the workers of a cluster of its own, which ends with the stack."""

    def __init__(self, X, stack, direct_to_workers=None, **how):
        super().__init__(X, GEOMETRY)
        where = {} if how.get("processes") is False else {"host": "127.0.0.1"}
        local = stack.enter_context(LocalCluster(dashboard_address="127.0.0.1:0", **where, **how))
        self.client = stack.enter_context(Client(local, direct_to_workers=direct_to_workers))
        blocks = [dask.delayed(X[rows]) for rows in chunk_rows(*X.shape)]
        with self.client.as_current():
            bags, self.backend = open_bags(MODEL, blocks, is_fitting=True)
            self.chunks = self.backend.prepare(bags, np.ones(X.shape[0], np.float32), X.shape[1], GEOMETRY)


def in_turns(X, kinds, turns, n):
    """Return the time of an iteration of each kind of learner, from the same grid, and the bytes transferred.

    A kind is the options of a cluster, or None for threads without one. In every turn n iterations in a row are timed
    together; the fastest turn counts.
    """
    plain = Learner(X, GEOMETRY)
    plain.iterate(5)
    start = plain.grid
    times, moved = {name: [] for name in kinds}, {name: [] for name in kinds}
    for _ in range(turns):
        for name, how in kinds.items():
            with ExitStack() as stack:
                learner = plain if how is None else DaskLearner(X, stack, **how)
                for is_timed in (False, True):  # the first time compiles, and moves the bags to their workers
                    learner.grid = start
                    before, began = received(), time.perf_counter()
                    learner.iterate(n if is_timed else 3)
                times[name].append((time.perf_counter() - began) / n)
                moved[name].append((received() - before) / n)
    return {name: min(each) for name, each in times.items()}, {name: min(each) for name, each in moved.items()}


def received():
    """Return how many bytes this machine has sent to itself; 0 where that is unknown."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.strip().startswith("lo:")), 0)


def overhead(n_bags, turns, direct):
    X, _ = text_bags(0, n_bags)
    worker = {"n_workers": 1, "threads_per_worker": 2, "direct_to_workers": direct}
    kinds = {
        "two threads, no cluster": None,
        "one worker of two threads, in this process": {**worker, "processes": False},
        "one worker of two threads, a process": worker,
    }
    seconds, moved = in_turns(X, kinds, turns, FIT)
    plain = next(iter(seconds.values()))
    table(
        f"{n_bags} bags of text, 5000 features, 32x32, window 5x5 (at most 35% over threads)",
        ["where", "ms per iteration", "over threads", "MB transferred"],
        [
            [name, f"{1e3 * s:.0f}", f"{100 * (s / plain - 1):.0f}%", f"{moved[name] / 1e6:.0f}"]
            for name, s in seconds.items()
        ],
    )


def scaling(n_bags, turns, direct):
    """Return the seconds that one thread takes for a bag, and the non-zero counts of a bag."""
    sets = range(-(-n_bags // 10_000))  # few at a time: they are drawn dense
    X = sp.csr_array(sp.vstack([text_bags(seed, min(n_bags, 10_000))[0] for seed in sets])[:n_bags])
    X = X[np.random.default_rng(0).permutation(n_bags)]  # or one worker would have the sets that take longer
    how = {"threads_per_worker": 1, "direct_to_workers": direct}
    kinds = {f"{n} of one thread": {"n_workers": n, **how} for n in (1, 2)}
    seconds, moved = in_turns(X, kinds, turns, 4)
    one = next(iter(seconds.values()))
    table(
        f"{n_bags} bags, {len(chunk_rows(*X.shape))} chunks",
        ["workers", "ms per iteration", "speedup", "MB transferred"],
        [[name, f"{1e3 * s:.0f}", f"{one / s:.2f}", f"{moved[name] / 1e6:.0f}"] for name, s in seconds.items()],
    )
    return one / n_bags, X.nnz / n_bags


def billion(seconds_a_bag, entries_a_bag, n_bags=10**9):
    grid = 5000 * prod(GEOMETRY.grid) * 4
    higher = ceil(log2(MOST_CHUNKS / FAN) / log2(HIGHER))
    # The grid from the caller to a machine and on to the others, sums to a machine level by level, the total back.
    hops = 1 + ceil(log2(MACHINES)) + FAN - 1 + higher * (HIGHER - 1) + 1
    work, transfers = n_bags * seconds_a_bag / (MACHINES * THREADS), hops * grid / NETWORK
    rows = [
        ["bags in memory, GB per machine", f"{n_bags * entries_a_bag * 8 / MACHINES / 1e9:.1f}"],
        ["grid, MB", f"{grid / 1e6:.0f}"],
        ["work, seconds per iteration", f"{work:.1f}"],
        ["transfers, seconds per iteration", f"{transfers:.1f}"],
        ["100 iterations, minutes", f"{100 * (work + transfers) / 60:.0f}"],
    ]
    title = f"extrapolated: {n_bags} such bags on {MACHINES} machines of {THREADS} threads, 10 Gbit/s"
    table(title, ["quantity", "value"], rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bags", type=int, default=5000)
    parser.add_argument("--many", type=int, default=120_000)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--quiet", action="store_true", help="less housekeeping by Dask")
    parser.add_argument("--direct", action="store_true", help="connect the client to workers without the scheduler")
    options = parser.parse_args()
    dask.config.set(QUIET if options.quiet else {})
    warnings.filterwarnings("ignore", message="Sending large graph")
    overhead(options.bags, options.turns, options.direct)
    if options.many:
        billion(*scaling(options.many, options.turns, options.direct))


if __name__ == "__main__":
    main()
