"""The package as users see it: what importing costs, which names are public, whether options are documented."""

import inspect
import re
import subprocess
import sys

import pytest

import countinggrids
from countinggrids import baselines, features, plot


def loaded_after(code):
    command = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import countinggrids") & {"numpy", "sklearn", "scipy", "typer"}


def test_learning_with_numpy_loads_no_other_arrays():
    code = (
        "import numpy as np, countinggrids as cg\n"
        "model = cg.CountingGrid((4, 4), 2, eta=1, anneal=(0.5, 1.5, 1), tol=1).fit(np.eye(6)).partial_fit(np.eye(6))\n"
        "model.transform(np.eye(6))"
    )
    loaded = loaded_after(code)
    assert not loaded & {"torch", "array_api_compat", "dask", "distributed"}
    assert not {name for name in loaded if name.startswith("countinggrids.backends.dask")}
    assert not loaded & {"countinggrids.backends.torch", "countinggrids.training.checkpoints"}


def test_help_answers_without_scikit_learn():
    code = (
        "from typer.testing import CliRunner\n"
        "from countinggrids.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0"
    )
    assert not loaded_after(code) & {"sklearn", "matplotlib"}


def test_public_names_are_all_there():
    assert set(countinggrids.__all__) <= set(dir(countinggrids))
    for name in countinggrids.__all__:
        assert getattr(countinggrids, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'grid'"):
        countinggrids.grid  # noqa: B018


def public_classes():
    """List what users construct, with the options of each."""
    for package in (countinggrids, features, baselines):
        for name in package.__all__:
            if hasattr(getattr(package, name), "get_params"):
                yield getattr(package, name)


@pytest.mark.parametrize("cls", list(public_classes()), ids=lambda cls: cls.__name__)
def test_every_option_of_every_estimator_is_documented(cls):
    documented = re.findall(r"^([\w, ]+) : ", inspect.getdoc(cls), re.MULTILINE)
    names = {name for line in documented for name in line.split(", ")}
    assert set(cls().get_params(deep=False)) <= names


@pytest.mark.parametrize("name", plot.__all__)
def test_every_option_of_every_plot_is_documented(name):
    documented = re.findall(r"^([\w, ]+) : ", inspect.getdoc(getattr(plot, name)), re.MULTILINE)
    names = {name for line in documented for name in line.split(", ")}
    assert set(inspect.signature(getattr(plot, name)).parameters) <= names
