"""What the documentation says is tried: Python blocks are run, and commands are parsed."""

import importlib.util
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer

from countinggrids.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not page.relative_to(ROOT).as_posix().startswith(("docs/_build", "docs/gallery"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


RUNNABLE = [page for page in PAGES if page.parent.name in ("start", "guide", "coming-from") or page.name == "README.md"]
RUNNABLE = [page for page in RUNNABLE if blocks(page, "python")]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)


OTHERS = [(page, block) for page in PAGES for block in blocks(page, "py")]
"""Code of other packages, which tests do not have: it is compiled only."""


@pytest.mark.parametrize(("page", "block"), OTHERS, ids=[page.stem for page, _ in OTHERS])
def test_code_of_other_packages_is_python(page, block):
    assert "import" in block
    compile(block, page.name, "exec")


def test_each_tool_that_users_come_from_is_shown_beside_ours():
    for page in sorted((ROOT / "docs" / "coming-from").glob("*.md")):
        shown = re.findall(r"^::::\{container\} side-by-side\n(.*?)^::::\n", page.read_text(), re.MULTILINE | re.DOTALL)
        expected = 0 if page.stem == "index" else 1
        assert len(shown) == expected, page.name
        assert all(text.count("```py") == 2 for text in shown), page.name


def commands(page):
    """Yield the arguments of each `countinggrids` command that a page shows."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["countinggrids"]:
                yield words[1:]


def unknown_in(words):
    """Return what a command does not know of its arguments; None if it knows all."""
    command = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands"):
        return None if words in (["--help"], ["--version"]) else f"no command {words[:1]}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    wrong = [word for word in words if re.match(r"--?[a-z]", word) and word not in known | {"--help"}]
    return f"{command.name} has no option {wrong}" if wrong else None


COMMANDS = [(page.name, " ".join(words)) for page in PAGES for words in commands(page)]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_commands_that_are_shown_exist(page, line):
    assert unknown_in(line.split()) is None


def test_commands_that_do_not_exist_are_noticed():
    assert len(COMMANDS) > 8
    assert unknown_in(["fit", "x.cg", "--grids", "3x3"]) == "fit has no option ['--grids']"
    assert unknown_in(["fits", "x.cg"]) == "no command ['fits']"
    assert unknown_in(["bag", "text", "x.csv", "-o", "y"]) is None


def test_pictures_of_the_guide_measure_distances_on_the_torus():
    pytest.importorskip("matplotlib").use("agg")
    path = ROOT / "docs" / "_extensions" / "guide_pictures.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    rows, columns = pictures.GRID
    places = np.array([[0, 0], [rows - 1, columns - 1], [3, 4]])
    np.testing.assert_allclose(pictures.between(places), [np.sqrt(2), 5, np.sqrt(4**2 + 5**2)])
