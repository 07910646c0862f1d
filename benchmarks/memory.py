"""Memory of a fit beyond X, the model and its statistics: at most 256 MB, for any number of bags.

The second table counts the arrays of the size of the grid that a default fit holds at its peak: pi, log h, the expected
counts, and the best grid on held-out bags; posteriors and the pieces that are worked on come on top.

python benchmarks/memory.py [--bags 200000]
"""

import argparse
import tracemalloc

import numpy as np
import scipy.sparse as sp

import countinggrids as cg
from common import peak, table, windows

N_FEATURES = 2000


def bags(n_bags, n_features=N_FEATURES, per_bag=50, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.integers(n_features, size=n_bags * per_bag, dtype=np.int32)
    ends = np.arange(0, n_bags * per_bag + 1, per_bag, dtype=np.int32)
    return sp.csr_array((np.ones(columns.size, np.float32), columns, ends), shape=(n_bags, n_features))


def measure(n_bags):
    """Return megabytes: of X, of the model with its statistics, and of the peak of a fit beyond both."""
    options = {"anneal": None, "max_iter": 2, "tol": 10.0}
    cg.CountingGrid((32, 32), 5, **options).fit(bags(3000))
    X = bags(n_bags)
    before = peak()
    cg.CountingGrid((32, 32), 5, **options).fit(X)
    model = 4 * N_FEATURES * 1024 * 4 / 2**20
    return (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20, model, peak() - before - model


def text_like(n_bags, n_features, side, window, seed=0):
    """Draw short texts from windows of a grid."""
    rng = np.random.default_rng(seed)
    base = 1 / (np.arange(n_features) + 2.7)
    h = windows(rng.dirichlet(60 * base / base.sum(), (side, side)), window)
    return sp.csr_array([rng.multinomial(60, h[k]) for k in rng.integers(len(h), size=n_bags)], dtype=np.float32)


def grids(n_bags=1100, n_features=1500, side=32, window=8):
    """Return the peak of the memory that a default fit allocates, in arrays of the size of the grid."""
    X = text_like(n_bags, n_features, side, window)
    options = {"max_iter": 34, "random_state": 0}
    cg.CountingGrid((8, 8), 4, **options).fit(X[:100, :50])
    tracemalloc.start()
    model = cg.CountingGrid((side, side), window, **options).fit(X)
    return tracemalloc.get_traced_memory()[1] / model.pi_.nbytes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=200_000)
    n_bags = parser.parse_args().bags
    names = ("X", "pi, h, log h and A", "more at the peak of fit (at most 256)")
    whole = n_bags * 1024 * 4 / 2**20
    table(
        f"Memory: {n_bags} bags, {N_FEATURES} features, 32x32 (bags by cells would be {whole:.0f} MB)",
        ["what", "MB"],
        [[name, f"{megabytes:.0f}"] for name, megabytes in zip(names, measure(n_bags), strict=True)],
    )
    title = "Default fit of 1100 texts, 1500 features, 32x32: peak, in arrays of the size of the grid"
    table(title, ["arrays"], [[f"{grids():.1f}"]])


if __name__ == "__main__":
    main()
