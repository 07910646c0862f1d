"""Time of an EM iteration with NumPy, and with torch on every available device, in the same process.

python benchmarks/devices.py
"""

import numpy as np

from common import Learner, best_of, dense_bags, table, text_bags
from countinggrids.backends.torch import TorchBackend, available_devices
from countinggrids.core.geometry import Geometry
from countinggrids.data.table import Table

CASES = {
    "dense: 2000 bags, 200 features, 32x32/8x8": (lambda: dense_bags(0, 2000)[0], Geometry.of((32, 32), 8)),
    "sparse: 2000 bags, 5000 features, 32x32/5x5": (lambda: text_bags(0, 2000)[0], Geometry.of((32, 32), 5)),
    "tessellated 4x4: 1000 bags, 200 features, 24x24/8x8": (
        lambda: np.random.default_rng(0).poisson(0.5, (1000, 3200)).astype(np.float32),
        Geometry.of((24, 24), 8, 4),
    ),
}


def main():
    devices = available_devices()
    rows = []
    for case, (make, geometry) in CASES.items():
        X = make()
        times = []
        for device in (None, *devices):
            learner = Learner(X, geometry)
            if device is not None:
                learner.backend = TorchBackend(device, "float32")
                weights = np.ones(X.shape[0], np.float32)
                learner.chunks = learner.backend.prepare(Table.of(X), weights, learner.n_features, geometry)
            learner.iterate(20)
            times.append(best_of(learner.iterate))
        rows.append([case, *(f"{seconds * 1e3:.1f} ms" for seconds in times)])
    header = ["case", "NumPy", *(f"torch, {device}" for device in devices)]
    table("One iteration in float32, from the 20th on", header, rows)


if __name__ == "__main__":
    main()
