"""Fits on a cluster and beside it, to be compared."""

import subprocess
import sys

import dask

import countinggrids as cg

OPTIONS = {"max_iter": 12, "tol": 9.0, "anneal": (0.5, 1.5, 1), "random_state": 0}
LOCAL = {"processes": True, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}


def model(**options):
    return cg.CountingGrid((6, 6), (3, 3), **OPTIONS | options)


def odd_blocks(X):
    return [dask.delayed(X[a:b]) for a, b in [(0, 1), (1, 64), (64, 64), (64, 150)]]


def same(given, wanted):
    return given.pi_.tobytes() == wanted.pi_.tobytes() and given.history_.tobytes() == wanted.history_.tobytes()


def start(*arguments):
    return subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
