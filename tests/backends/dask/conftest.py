import time

import distributed
import numpy as np
import pytest
import scipy.sparse as sp
from fits import LOCAL, start

from countinggrids.data import chunks


@pytest.fixture
def X(rng, monkeypatch):  # noqa: N802
    """Sparse bags, cut into many chunks."""
    monkeypatch.setattr(chunks, "CHUNK_BAGS", 15)
    monkeypatch.setattr(chunks, "BAGS_PER_FEATURE", 0)
    return sp.csr_array(rng.poisson(0.3, (150, 40)).astype(np.float32))


@pytest.fixture(scope="module")
def two_workers():
    with distributed.LocalCluster(n_workers=2, **LOCAL) as local:
        yield local


@pytest.fixture
def client(two_workers):
    with distributed.Client(two_workers) as client:
        yield client


@pytest.fixture
def programs(tmp_path):
    """Start a scheduler and two workers as programs; yield the address, the workers and the scheduler."""
    told = tmp_path / "scheduler.json"
    local = ["--scheduler-file", str(told), "--host", "127.0.0.1", "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", *local, "--nthreads", "1", "--no-nanny"]
    running = [start("distributed.cli.dask_scheduler", *local, "--port", "0")]
    try:
        running += [start(*worker, "--name", name) for name in ("one", "two")]
        deadline = time.monotonic() + 30
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(told), timeout=30) as client:
            client.wait_for_workers(2, timeout=30)
            address = client.scheduler.address
        yield address, running[1:], running[0]
    finally:
        for each in running:
            each.kill()
            each.wait()
