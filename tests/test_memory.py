"""A fit streams over its bags: what it needs beyond X and the model does not grow with them."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_bags_by_cells_is_never_held():
    code = "import memory; print(memory.measure(100_000)[2])"
    result = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    bags_by_cells = 100_000 * 1024 * 4 / 2**20
    assert float(result.stdout) < 256 < bags_by_cells


def test_a_default_fit_holds_few_arrays_of_the_size_of_the_grid():
    code = "import memory; print(memory.grids())"
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=True
    )
    # pi, log h, the expected counts and the best grid; the posteriors of these few features are about another one.
    assert 3 < float(result.stdout) < 6


def test_bags_on_disk_are_never_held_and_give_the_same_bits(tmp_path):
    write = f"import outofcore; outofcore.write({str(tmp_path / 'bags.cg')!r}, 60_000, 5000)"
    subprocess.run([sys.executable, "-c", write], cwd=BENCHMARKS, check=True)
    code = "import outofcore as o, json; print(json.dumps(o.fit({p!r}, {held}, 1)))"
    found = []
    for is_held in (False, True):
        code_now = code.format(p=str(tmp_path / "bags.cg"), held=is_held)
        run = subprocess.run([sys.executable, "-c", code_now], cwd=BENCHMARKS, capture_output=True, check=True)
        found.append(json.loads(run.stdout))
    megabytes = (tmp_path / "bags.cg").stat().st_size / 2**20
    assert found[0]["objective"] == found[1]["objective"]
    assert found[0]["megabytes"] < found[1]["megabytes"] - megabytes / 2
