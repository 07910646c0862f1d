"""A fit streams over its bags: what it needs beyond X and the model does not grow with them."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_bags_by_cells_is_never_held():
    code = "import memory; print(memory.measure(100_000)[2])"
    result = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    bags_by_cells = 100_000 * 1024 * 4 / 2**20
    assert float(result.stdout) < 256 < bags_by_cells
