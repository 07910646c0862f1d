"""The project around the package: workflows, templates, versions, links, and the tools for releases."""

import importlib
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import countinggrids

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.github-issue-forms": [GITHUB / "ISSUE_TEMPLATE" / "bug.yml", GITHUB / "ISSUE_TEMPLATE" / "feature.yml"],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}
"""Schemas that check-jsonschema has with it, so that nothing is downloaded."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def violations(schema, *files):
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--default-filetype", "yaml", "--builtin-schema", schema]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_the_host_follow_their_schema(schema):
    assert SCHEMAS[schema]
    assert violations(schema, *SCHEMAS[schema]) == ""


def test_a_broken_workflow_would_be_noticed(tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "runs_on:"))
    assert violations("vendor.github-workflows", broken) != ""


def test_workflows_call_targets_that_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {name for path in WORKFLOWS for name in re.findall(r"\bmake ([\w-]+)", path.read_text())}
    assert {"lint", "unit", "oldest", "docs", "release-check"} <= called <= targets
    scripts = {name for path in WORKFLOWS for name in re.findall(r"\b(tools/\w+\.py)", path.read_text())}
    assert scripts
    assert all((ROOT / name).is_file() for name in scripts)


def test_workflows_do_not_write_unless_they_publish():
    yaml = pytest.importorskip("ruamel.yaml")
    for path in WORKFLOWS:
        flow = yaml.YAML(typ="safe").load(path)
        assert flow["permissions"] == {"contents": "read"}, path
        granted = {name: job["permissions"] for name, job in flow["jobs"].items() if "permissions" in job}
        assert granted in ({}, {"publish": {"id-token": "write"}})


def test_every_python_version_that_is_promised_is_tested():
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    matrix = re.search(r"python: \[.*\]", (GITHUB / "workflows" / "tests.yml").read_text())[0]
    tested = re.findall(r'"(3\.\d+)"', matrix)
    assert promised == tested
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_the_version_is_written_once():
    assert tool("release_check").version() == countinggrids.__version__
    assert "version" in PROJECT["dynamic"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", countinggrids.__version__)


def test_oldest_versions_come_from_the_lower_bounds():
    oldest = tool("oldest_dependencies")
    assert oldest.constraints(["a>=1", "b[x,y]>=2024.8", "a>=1.2.3"]) == ["a==1.2.3.*", "b==2024.8.*"]
    assert oldest.constraints(["a>=13"]) == ["a==13.0.*"]
    with pytest.raises(ValueError, match=r"'a<2' must be NAME>=VERSION"):
        oldest.constraints(["a<2"])
    pinned = "\n".join(oldest.constraints(oldest.requirements(PROJECT)))
    assert "numpy==2." in pinned
    assert "pytest" not in pinned


def test_a_slower_package_raises_the_alert(monkeypatch, capsys, tmp_path):
    compare_speed = tool("compare_speed")
    monkeypatch.setattr(compare_speed, "seconds", lambda tree, name, n: 2.0 if tree.name == "slow" else 1.5)
    for old, new, code in (("slow", "fast", 0), ("fast", "slow", 1), ("fast", "fast", 0)):
        monkeypatch.setattr(sys, "argv", ["x", old, new, "--rounds", "1", "--json", str(tmp_path / "speed.json")])
        assert compare_speed.main() == code
    assert "1.33" in capsys.readouterr().out
    assert '"ratio": 1.0' in (tmp_path / "speed.json").read_text()


def test_fits_are_timed():
    compare_speed = tool("compare_speed")
    tree = Path(countinggrids.__file__).parents[1]
    assert 0 < compare_speed.seconds(tree, "sections", 20) < 60


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


GENERATED = ("docs/gallery", "docs/_build", "docs/_generated", "docs/reference/api", "docs/reference/commands.md")
"""What the build of the site writes; it checks links to these itself."""


def is_generated(path):
    return path.resolve().relative_to(ROOT).as_posix().startswith(GENERATED)


PAGES = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if not is_generated(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        if is_generated(found):
            continue
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def documented_names():
    """List what the reference of the API lists, as qualified names."""
    names, module = set(), ""
    for line in (ROOT / "docs" / "reference" / "api.rst").read_text().splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            names.add(f"{module}.{line.strip()}")
    return names


@pytest.mark.parametrize("package", tool("docstrings").PUBLIC)
def test_every_public_name_is_in_the_reference(package):
    public = importlib.import_module(package)
    listed = {
        id(getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2])): name
        for name in documented_names()
    }
    missing = [name for name in public.__all__ if name != "__version__" and id(getattr(public, name)) not in listed]
    assert missing == [], f"list these in docs/reference/api.rst: {missing}"


def test_the_reference_lists_nothing_that_is_not_public():
    for name in documented_names():
        package, _, attribute = name.rpartition(".")
        assert attribute in importlib.import_module(package).__all__, name


def test_broken_links_of_the_site_are_found(tmp_path):
    check = tool("check_links")
    (tmp_path / "index.html").write_text('<h1 id="top"></h1><a href="b.html#here">b</a><a href="#top">top</a>')
    (tmp_path / "b.html").write_text('<p id="here"></p><img src="b.png">')
    (tmp_path / "b.png").write_bytes(b"")
    assert check.faults(tmp_path) == []
    (tmp_path / "b.html").write_text('<img src="c.png"><script src="https://host/x.js"></script>')
    assert check.faults(tmp_path) == [
        "b.html: c.png does not exist",
        "b.html: loads https://host/x.js from another host",
        "index.html: b.html#here has no such anchor",
    ]


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """The suite of benchmarks, with one small benchmark that prints a table and one that fails."""
    spec = importlib.util.spec_from_file_location("suite", ROOT / "benchmarks" / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "quick.py").write_text("from common import table\ntable('title', ['a', 'b'], [[1, 2.5]])\n")
    (tmp_path / "broken.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "common.py").write_text((ROOT / "benchmarks" / "common.py").read_text())
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(module, "HISTORY", tmp_path / "history")
    return module


def test_benchmarks_write_json_and_keep_their_history(suite, tmp_path):
    assert suite.names() == ["broken", "quick"]
    for _ in range(2):
        assert suite.run("quick", tmp_path / "out")
    result = json.loads((tmp_path / "out" / "quick.json").read_text())
    assert result["tables"] == [{"title": "title", "header": ["a", "b"], "rows": [["1", "2.5"]]}]
    assert len(json.loads((tmp_path / "history" / "quick.json").read_text())) == 2


def test_a_benchmark_that_fails_is_reported_and_not_remembered(suite, tmp_path):
    assert not suite.run("broken", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "broken.json").read_text())["exit_code"] == 3
    assert not (tmp_path / "history").exists()


def test_a_mutant_is_killed_by_a_test_that_fails_with_it(tmp_path):
    mutation_test = tool("mutation_test")
    (tmp_path / "mutated.py").write_text("answer = 42\n")
    (tmp_path / "test_answer.py").write_text(
        "def test_answer():\n    from mutated import answer\n    assert answer == 42\n"
    )
    tests = [str(tmp_path / "test_answer.py")]
    assert not mutation_test.is_killed(tmp_path, tests)
    (tmp_path / "mutated.py").write_text("answer = 43\n")
    assert mutation_test.is_killed(tmp_path, tests)


def test_mutants_change_one_thing_each():
    assert mutated("b + 1") == ["b - 1", "b + 2"]
    assert mutated("a < b and True") == ["a < b or True", "a >= b and True", "a < b and False"]


def test_settings_and_the_size_of_caches_are_not_mutated():
    assert mutated("a") == []


def mutated(expression):
    """List the mutants of a function that returns an expression, below a setting and a cache."""
    source = f"LARGEST = 3\n\n\n@cache(8)\ndef function():\n    return {expression}\n"
    return [text.split("return ")[1] for _, text in tool("mutation_test").mutants(source)]


def test_the_gallery_lists_every_example_once():
    spec = importlib.util.spec_from_file_location("gallery_order", ROOT / "docs" / "_extensions" / "gallery_order.py")
    gallery_order = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery_order)
    examples = [path.name for path in (ROOT / "examples").glob("plot_*.py")]
    assert sorted(map(gallery_order.reading_order, examples)) == list(range(len(gallery_order.ORDER)))
    with pytest.raises(ValueError, match=r"plot_new\.py must be listed"):
        gallery_order.reading_order("plot_new.py")
