"""Time of an EM iteration relative to its two matrix products alone, in the same process.

python benchmarks/speed.py
"""

import time
from functools import partial

import numpy as np

import countinggrids as cg
from common import Learner, dense_bags, table, text_bags, times_of
from countinggrids.core import em, torus
from countinggrids.core.geometry import Geometry


def two_products(X, n_cells, n=9):
    """Time the two matrix products of one iteration with the default threads of BLAS; return shortest and median."""
    table_ = np.random.default_rng(0).random((X.shape[1], n_cells), np.float32)
    q = np.random.default_rng(0).random((X.shape[0], n_cells), np.float32)
    both = times_of(lambda: X @ table_, n), times_of(lambda: X.T @ q, n)
    time.sleep(0.5)  # BLAS threads wait busily for a while after a product; what is timed next must not compete
    return sum(map(min, both)), sum(map(np.median, both))


def in_plain_numpy(X, grid, window):
    """Run one iteration in plain NumPy, without the objective, with the default threads of BLAS."""
    pi, log_prior = grid
    size = np.prod(window, dtype=np.float32)
    h = torus.window_sum(pi, window) / size
    scores = X @ np.log(h).reshape(len(pi), -1)
    scores += log_prior.ravel()
    scores -= scores.max(axis=1, keepdims=True)
    q = np.exp(scores, out=scores)
    q /= q.sum(axis=1, keepdims=True)
    counts = torus.covering_sum((X.T @ q).reshape(pi.shape) / h, window)
    counts *= pi / size
    counts += 0.1
    usage = torus.covering_sum(q.sum(axis=0).reshape(log_prior.shape), window)
    return em.Grid(counts / counts.sum(axis=0), np.log(usage / usage.sum()))


PHASES = {"2nd to 6th (all of q counts)": 5, "7th to 20th": 14, "21st to 60th": 40, "61st to 100th": 40}


def dense(n_bags=2000):
    X = dense_bags(0, n_bags)[0]
    geometry = Geometry.of((32, 32), 8)
    Learner(X, geometry).iterate(12)  # warm-up
    learner = Learner(X, geometry)
    rows, bounds = [], []
    learner.iterate()
    plain = np.array(times_of(partial(in_plain_numpy, X, learner.grid, geometry.window), 25))
    for name, n in PHASES.items():
        bounds.append(two_products(X, 1024, 25))
        rows.append([name, learner.times(n)])
    shortest, median = np.min(bounds, axis=0)

    def row_of(name, times):
        both = times.min(), np.median(times)
        return [name, "{:.1f}, {:.1f} ms".format(*(1e3 * each for each in both)), f"{both[0] / shortest:.2f}",
                f"{both[1] / median:.2f}", f"{both[1] / np.median(plain):.2f}"]  # fmt: skip

    ours = np.concatenate([times for _, times in rows])
    rows = [row_of(name, times) for name, times in rows]
    rows.append(
        ["all of these, mean", f"{1e3 * ours.mean():.1f} ms", "", f"{ours.mean() / median:.2f}",
         f"{ours.mean() / np.median(plain):.2f}"]
    )  # fmt: skip
    rows.append(row_of("2nd, in plain NumPy", plain))
    table(
        f"Dense: {n_bags} bags, 200 features, 32x32/8x8; two bare SGEMMs "
        f"{1e3 * shortest:.1f}, median {1e3 * median:.1f} ms (target 1.0, goal 0.6)",
        [
            "iterations",
            "shortest, median",
            "shortest over SGEMMs",
            "median over SGEMMs",
            "median over plain NumPy",
        ],
        rows,
    )


def whole_fits():
    X = dense_bags(0, 2000)[0]
    Learner(X, Geometry.of((32, 32), 8)).iterate(12)  # compiles what is to be compiled
    rows = []
    for name, options in {"default": {}, "anneal=None": {"anneal": None}}.items():
        ends = []
        model = cg.CountingGrid((32, 32), 8, random_state=0, **options)
        model.fit(X, callback=lambda now, ends=ends: ends.append((now.stage, time.perf_counter())) and None)
        time.sleep(0.5)
        _, bound = two_products(X, 1024, 25)
        times = np.diff([at for stage, at in ends if stage == "learning"])
        rows.append([name, str(len(times)), f"{np.median(times) / bound:.2f}", f"{times.mean() / bound:.2f}"])
    table(
        "Whole fits of 2000 bags, iterations on the full grid, over the SGEMMs' median",
        ["settings", "iterations", "median", "mean"],
        rows,
    )


def growth():
    X = dense_bags(0, 4000)[0]

    def time_of(bags, grid, window, n):
        learner = Learner(bags, Geometry.of(grid, window))
        if n:
            learner.iterate(n)
        return learner.best()

    for name, n in [("first iteration, all of q counts", 0), ("30th iteration, wider windows leave more of q", 30)]:
        base = time_of(X[:2000], (32, 32), 8, n)
        widths = {w: time_of(X[:2000], (32, 32), w, n) for w in (2, 4, 8, 16)}
        rows = [[f"window {w}x{w}", f"{seconds / widths[2]:.2f}", "1.2"] for w, seconds in widths.items()]
        rows.append(["twice the bags", f"{time_of(X, (32, 32), 8, n) / base:.2f}", "2.1"])
        rows.append(["twice the cells", f"{time_of(X[:2000], (64, 32), 8, n) / base:.2f}", "2.2"])
        table(f"Growth, {name} (windows against 2x2, the rest against 8x8)", ["change", "factor", "bar"], rows)


def sparse():
    X = text_bags(0, 5000)[0]
    bound, _ = two_products(X.toarray(), 1024)
    learner = Learner(X, Geometry.of((32, 32), 5))
    rows = []
    for name, n in [("first", 1), ("10th", 9), ("30th", 20)]:
        learner.iterate(n)
        seconds = learner.times(15).min()
        rows.append([name, f"{seconds * 1e3:.1f} ms", f"{seconds / bound:.2f}"])
    table(
        f"Sparse: 5000 bags, 5000 features, {X.nnz / 5000:.0f} non-zeros a bag, 32x32/5x5; "
        f"two dense SGEMMs {bound * 1e3:.0f} ms (target 0.25, goal 0.15)",
        ["iteration", "time", "over two SGEMMs"],
        rows,
    )


def epitomes():
    rng = np.random.default_rng(0)
    scene = np.kron(rng.integers(200, size=(32, 32)), np.ones((4, 4), int))
    scene = np.where(rng.random(scene.shape) < 0.5, scene, rng.integers(200, size=scene.shape))
    maps = [np.roll(scene, rng.integers(128, size=2), (0, 1))[:31, :31] for _ in range(100)]
    whole, by_cell = cg.bag(maps, 1, 200), cg.bag(maps, 31, 200)
    cases = {
        "counting grid 1x1": (whole, Geometry.of((64, 64), 31)),
        "discrete epitome": (by_cell, Geometry.of((64, 64), 31, 31)),
        "hybrid": (by_cell, Geometry.of((64, 64), 31, 1, 31)),
    }
    times = {}
    for name, (X, geometry) in cases.items():
        learner = Learner(X, geometry)
        learner.iterate(10)
        times[name] = learner.best()
    base = times["counting grid 1x1"]
    rows = [[name, f"{seconds * 1e3:.1f} ms", f"{seconds / base:.2f}"] for name, seconds in times.items()]
    table("100 maps of 31x31, 200 features, grid 64x64 (target 3.0)", ["model", "time", "over 1x1"], rows)


if __name__ == "__main__":
    dense()
    dense(16_000)
    whole_fits()
    growth()
    sparse()
    epitomes()
