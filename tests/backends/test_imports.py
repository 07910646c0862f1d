"""What a plain fit imports: nothing of Dask, torch and checkpoints."""

import subprocess
import sys

SCRIPT = """
import sys, numpy as np, countinggrids as cg
model = cg.CountingGrid((4, 4), (2, 2), max_iter=2, tol=9.0)
model.fit(np.ones((5, 3))).transform(np.ones((5, 3)))
print(*sys.modules)
"""


def loaded_by(script):
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_a_plain_fit_imports_neither_dask_nor_torch_nor_checkpoints():
    loaded = loaded_by(SCRIPT)
    assert "countinggrids.backends.threads" in loaded
    parts = {"countinggrids.backends.dask", "countinggrids.backends.torch", "countinggrids.training.checkpoints"}
    assert not loaded & {*parts, "dask", "distributed", "torch", "array_api_compat"}


def test_the_command_connects_to_no_scheduler_without_dask():
    loaded = loaded_by(
        "import sys; sys.modules['dask'] = None\n"
        "from countinggrids.backends.dask.client import connected\n"
        "with connected(None): print('connected')"
    )
    assert loaded == {"connected"}
