"""Digests of fits of all kinds, to check that a refactoring leaves every bit of the results as it was.

    python benchmarks/hashes.py [--against OTHER/src]

With another source tree, fits whose algorithm is given (first grid, inverse temperatures, pseudocounts, number of
iterations) are made by both, and the largest differences of their parameters and objectives are printed: these are
rounding where the sums are made in another order.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import countinggrids as cg

GIVEN = {"random_state": 0, "max_iter": 30, "tol": 0.0, "eta": 0.01, "dtype": "float64", "anneal": None}


def bags():
    """Return feature maps, dense bags and sparse bags."""
    rng = np.random.default_rng(0)
    return rng.integers(30, size=(300, 4, 4)), rng.poisson(1.0, (400, 60)), sp.csr_array(rng.poisson(0.02, (3000, 900)))


def cases():
    """List a fit of every kind of model and of bags."""
    maps, dense, texts = bags()
    return {
        "counting grid": (cg.CountingGrid((16, 16), 4), dense),
        "plain EM": (cg.CountingGrid((16, 16), 4, anneal=None), dense),
        "float64": (cg.CountingGrid((16, 16), 4, dtype="float64"), dense),
        "tessellated": (cg.CountingGrid((12, 12), 4, 2), cg.bag(maps, 2, 30)),
        "epitome": (cg.DiscreteEpitome((12, 12), 4), cg.bag(maps, 4, 30)),
        "hybrid": (cg.HybridEpitome((12, 12), 4), cg.bag(maps, 4, 30)),
        "mixture": (cg.MixtureOfUnigrams(8), dense),
        "spatial bag of words": (cg.SpatialBagOfWords(8, (2, 2)), cg.bag(maps, 2, 30)),
        "texts": (cg.CountingGrid((24, 24), 4), texts),
        "texts, batches": (cg.CountingGrid((24, 24), 4, batch_size=500), texts),
        "three axes": (cg.CountingGrid((6, 6, 6), 2), dense),
    }


def given_cases():
    """List fits that any version makes by the same algorithm, with their number of features."""
    maps, dense, texts = bags()
    return {
        "plain EM, dense bags": (cg.CountingGrid((16, 16), 4), dense, 60),
        "given inverse temperatures": (cg.CountingGrid((16, 16), 4).set_params(anneal=(0.1, 1.1, 1.0)), dense, 60),
        "tessellated": (cg.CountingGrid((12, 12), 4, 2), cg.bag(maps, 2, 30), 30),
        "epitome": (cg.DiscreteEpitome((12, 12), 4), cg.bag(maps, 4, 30), 30),
        "texts": (cg.CountingGrid((24, 24), 4), texts, 900),
        "three axes": (cg.CountingGrid((6, 6, 6), 2), dense, 60),
    }


def digest(model, X):
    """Fit, and digest the parameters and the predictions."""
    model.set_params(random_state=0, max_iter=60, tol=1e-3).fit(X)
    parts = (model.pi_, model.log_prior_, model.history_, model.predict(X), model.score_samples(X))
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]


def write(path):
    """Make the given fits, and write their parameters and objectives."""
    found = {}
    for name, (model, X, n_features) in given_cases().items():
        first = 1 + np.random.default_rng(1).random((*model.grid, n_features))
        anneal = GIVEN["anneal"] if isinstance(model.anneal, str) else model.anneal
        model.set_params(**GIVEN | {"init": first, "anneal": anneal}).fit(X)
        found |= {f"{name}: pi": model.pi_, f"{name}: objective": np.asarray(model.history_)}
    np.savez(path, **found)


def differences(other):
    """Make the given fits with both source trees; list the largest differences."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("other.npz", "this.npz")]
        for source, path in zip((other, Path(__file__).parents[1] / "src"), paths, strict=True):
            environment = os.environ | {"PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
            subprocess.run([sys.executable, __file__, "--write", path], env=environment, check=True)
        theirs, ours = (np.load(path, allow_pickle=False) for path in paths)
        return [[name, f"{np.abs(theirs[name] - ours[name]).max():.1e}"] for name in ours]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="folder src of another version")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write)
    elif options.against:
        from common import table

        table("Largest differences of fits", ["fit", "difference"], differences(options.against))
    else:
        from common import table

        table("Digests of fits", ["fit", "digest"], [[name, digest(*case)] for name, case in cases().items()])
