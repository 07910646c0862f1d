import os
from pathlib import Path

import numpy as np
import pytest

collect_ignore_glob = ["*conftest.py"]  # fixtures, not doctests: modules of one name cannot be collected together


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data():
    """The folder of the data sets, or a skip."""
    folder = os.environ.get("COUNTINGGRIDS_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set COUNTINGGRIDS_DATA to their folder")
    return Path(folder)
