"""Digests of fits of all kinds, to check that a refactoring leaves every bit of the results as it was.

python benchmarks/hashes.py
"""

from hashlib import sha256

import numpy as np
import scipy.sparse as sp

import countinggrids as cg
from common import table


def cases():
    """List a fit of every kind of model and of bags."""
    rng = np.random.default_rng(0)
    maps, dense = rng.integers(30, size=(300, 4, 4)), rng.poisson(1.0, (400, 60))
    texts = sp.csr_array(rng.poisson(0.02, (3000, 900)))
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


def digest(model, X):
    """Fit, and digest the parameters and the predictions."""
    model.set_params(random_state=0, max_iter=60, tol=1e-3).fit(X)
    parts = (model.pi_, model.log_prior_, model.history_, model.predict(X), model.score_samples(X))
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]


if __name__ == "__main__":
    table("Digests of fits", ["fit", "digest"], [[name, digest(*case)] for name, case in cases().items()])
