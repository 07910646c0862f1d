"""The shape of the code base: who imports whom, what importing costs, what may not be used."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import countinggrids
from countinggrids import features, plot, rivals

SOURCE = Path(countinggrids.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
ORDER = [
    "compiling",
    "arrays",
    "torus",
    "alignment",
    "geometry",
    "bags",
    "tiles",
    "products",
    "posterior",
    "shortlist",
    "em",
    "sampling",
    "recipe",
    "learn",
    "progress",
    "engine",
    "device",
    "files",
    "items",
    "checks",
    "sources",
    "blockwise",
    "scheduler",
    "worker",
    "kept",
    "cluster",
    "checkpoints",
    "restarts",
    "model",
    "rows",
    "storage",
    "features",
    "collection",
    "datasets",
    "painting",
    "plot",
    "uses",
    "explore",
    "rivals",
    "demo",
    "reproduce",
    "cli",
]
ROOMS = sorted(path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
ROOMS.remove("__init__")


def files_of(room):
    """List the files of a module, or of a package."""
    return sorted((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]


def imports_of(path):
    """List our own rooms that a file imports from, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "countinggrids":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("countinggrids."):
            found.add(node.module.split(".")[1])
    return found & set(ROOMS)


def test_every_room_has_its_place():
    assert sorted(ORDER) == ROOMS


@pytest.mark.parametrize("room", [name for name in ORDER if name != "model"])
def test_rooms_import_only_from_those_above_them(room):
    above = ORDER[: ORDER.index(room)]
    for path in files_of(room):
        assert imports_of(path) <= {*above, room}


def test_the_model_reaches_down_only_to_save_and_to_be_explored():
    assert imports_of(SOURCE / "model.py") - set(ORDER[: ORDER.index("model")]) == {"storage", "explore"}


def test_contributors_find_every_room_in_that_order():
    table = [line.split("|")[1] for line in CONTRIBUTING.read_text().splitlines() if line.startswith("| `")]
    told = [name for cell in table for name in re.findall(r"`(\w+)(?:\.py|/)`", cell)]
    assert told == ORDER


def test_the_import_check_sees_imports(tmp_path):
    source = tmp_path / "torus.py"
    source.write_text("def f():\n    from countinggrids import em\n    from countinggrids.cli import app\n")
    assert imports_of(source) == {"em", "cli"}


def test_em_and_the_modules_below_it_know_no_files_no_printing_and_no_scikit_learn():
    for module in ORDER[: ORDER.index("em") + 1]:
        names = {
            node.id for node in ast.walk(ast.parse((SOURCE / f"{module}.py").read_text())) if isinstance(node, ast.Name)
        }
        assert not names & {"open", "print", "sklearn"}


def test_nothing_unpickles_and_nothing_phones_out():
    forbidden = {"pickle", "joblib", "requests", "urllib", "socket", "http"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
                assert not {name.split(".")[0] for name in names} & forbidden


def loaded_after(code):
    command = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import countinggrids") & {"numpy", "sklearn", "scipy", "numba", "typer"}


def test_learning_with_numpy_loads_no_other_arrays():
    code = (
        "import numpy as np, countinggrids as cg\n"
        "model = cg.CountingGrid((4, 4), 2, eta=1, anneal=(0.5, 1.5, 1), tol=1).fit(np.eye(6)).partial_fit(np.eye(6))\n"
        "model.transform(np.eye(6))"
    )
    assert not loaded_after(code) & {"torch", "array_api_compat"}


def test_help_answers_without_scikit_learn():
    code = (
        "from typer.testing import CliRunner\n"
        "from countinggrids.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0"
    )
    assert not loaded_after(code) & {"sklearn", "numba", "matplotlib"}


def test_public_names_are_all_there():
    assert set(countinggrids.__all__) <= set(dir(countinggrids))
    for name in countinggrids.__all__:
        assert getattr(countinggrids, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'grid'"):
        countinggrids.grid  # noqa: B018


def public_classes():
    """List what users construct, with the options of each."""
    for room in (countinggrids, features, rivals):
        for name in room.__all__:
            if hasattr(getattr(room, name), "get_params"):
                yield getattr(room, name)


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
