"""The shape of the code base: which package imports which, and what may not be used."""

import ast
import re
from pathlib import Path

import pytest

import countinggrids

SOURCE = Path(countinggrids.__file__).parent
ARCHITECTURE = Path(__file__).parents[1] / "docs" / "architecture.md"
ORDER = [
    "core",
    "kernels",
    "features",
    "data",
    "datasets",
    "backends",
    "training",
    "models",
    "meta",
    "baselines",
    "plot",
    "explore",
    "reproduce",
    "cli",
]
REACHING_DOWN = {
    "models/maps.py": {"explore", "meta"},
    "meta/fitted_search.py": {"plot"},
    "features/saving.py": {"data"},
}
"""Methods that show or save a result import what does so when they are called."""
OUTSIDE_OF_CORE = {"sklearn", "pathlib", "os", "json", "io", "print", "open", "ctypes", "torch"}


def imports_of(path):
    """List the modules that a file imports, wherever in the file it does so, with names imported from them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def packages_of(path):
    """List our own packages that a file imports from."""
    ours = [name.split(".")[1] for name in imports_of(path) if name.startswith("countinggrids.")]
    return set(ours) & set(ORDER)


def test_at_the_top_there_are_only_packages():
    entries = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert entries == {"__init__.py", "__main__.py", "py.typed", *ORDER}


@pytest.mark.parametrize("package", ORDER)
def test_packages_import_only_from_those_above_them(package):
    above = {*ORDER[: ORDER.index(package)], package}
    for path in (SOURCE / package).rglob("*.py"):
        allowed = above | REACHING_DOWN.get(path.relative_to(SOURCE).as_posix(), set())
        assert packages_of(path) <= allowed, path


def test_the_import_check_sees_every_form_of_import(tmp_path):
    source = tmp_path / "torus.py"
    source.write_text(
        "import countinggrids.cli\ndef f():\n    from countinggrids import data\n"
        "    from countinggrids.meta.search import x\n    from sklearn.utils import check_random_state\n"
    )
    assert packages_of(source) == {"cli", "data", "meta"}
    assert "sklearn.utils.check_random_state" in imports_of(source)


@pytest.mark.parametrize("package", ["core", "kernels"])
def test_the_mathematics_knows_no_files_no_printing_and_no_scikit_learn(package):
    for path in (SOURCE / package).glob("*.py"):
        if path.name in ("threads.py", "native.py"):
            continue
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        imported = {name.split(".")[0] for name in imports_of(path)}
        assert not (names | imported) & OUTSIDE_OF_CORE, path


def test_the_architecture_page_names_functions_that_exist():
    named = re.findall(r"`([\w/]+\.py)::([\w.]+)`", ARCHITECTURE.read_text())
    assert len(named) > 10
    for file, name in named:
        tree = ast.parse((SOURCE / file).read_text())
        for part in name.split("."):
            tree = next(node for node in tree.body if getattr(node, "name", None) == part)


def test_nothing_unpickles_and_nothing_phones_out():
    forbidden = {"pickle", "joblib", "requests", "urllib", "socket", "http"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
                assert not {name.split(".")[0] for name in names} & forbidden
