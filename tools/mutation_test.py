"""Mutation tests of the mathematics: python tools/mutation_test.py [--fraction 1] [--limit SECONDS] [module ...]

Each mutant changes one operator, comparison or number in a function of a module of `core`, in a copy of the source; the
tests of that module run against it. A mutant that no test notices survives, and is printed. Modules are em, torus,
schedule and componential by default; --fraction tries a random fraction of the mutants.
"""

import argparse
import ast
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]
TESTS = {
    "em": ["tests/core/test_em.py", "tests/test_laws.py"],
    "torus": ["tests/core/test_torus.py", "tests/core/test_em.py"],
    "schedule": ["tests/core/test_schedule.py", "tests/training/test_loop.py"],
    "componential": ["tests/core/test_componential.py", "tests/models/test_componential_grid.py"],
}
"""Tests that should notice a change in each module."""
IMPORTED = ("numpy", "scipy.sparse", "scipy.special", "sklearn.base", "sklearn.utils", "hypothesis.strategies")
"""Dependencies that are imported once for all mutants."""
LONGEST = 600
"""Seconds after which the tests of a mutant are ended."""
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def in_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of functions and classes, without decorators and without the constants of the module.

    Settings that were chosen by measurement have no right value, and the size of a cache changes no result.
    """
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            decorated = [part for each in ast.walk(node) for part in getattr(each, "decorator_list", ())]
            left_out = {id(part) for each in decorated for part in ast.walk(each)}
            yield from (each for each in ast.walk(node) if id(each) not in left_out)


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, object]]:
    """Yield the nodes that can be changed, with the attribute and its new value."""
    for node in in_functions(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OPERATORS:
            yield node, "op", OPERATORS[type(node.op)]()
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            yield node, "ops", [OPERATORS[type(node.ops[0])](), *node.ops[1:]]
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "value", node.value + 1
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield node, "value", not node.value


def mutants(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the source of every mutant."""
    for number in range(len(list(places(ast.parse(source))))):
        tree = ast.parse(source)
        node, attribute, value = list(places(tree))[number]
        setattr(node, attribute, value)
        yield node.lineno, ast.unparse(tree)  # type: ignore[attr-defined]


def run_tests(source: Path, tests: list[str]) -> NoReturn:
    """Run tests with the package in a folder, and end the process with their exit code."""
    os.chdir(ROOT)
    sys.path.insert(0, str(source))
    os.environ |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os._exit(int(pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests])))


def is_killed(source: Path, tests: list[str]) -> bool:
    """Return whether a test fails, or takes far too long, with the package in a folder.

    The tests run in a fork of this process, which has imported the dependencies, and not the package.
    """
    child = os.fork()
    if child == 0:
        run_tests(source, tests)
    began = time.monotonic()
    while time.monotonic() - began < LONGEST:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def main() -> int:
    """Try the mutants, print the survivors, and return 1 if fewer than 85% are killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=list(TESTS))
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which none is tried")
    options = parser.parse_args()
    killed = tried = 0
    began, chance = time.monotonic(), random.Random(0)
    for name in IMPORTED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copied)
        for module in options.modules:
            path = copied / "countinggrids" / "core" / f"{module}.py"
            original = path.read_text()
            if is_killed(copied, TESTS[module]):
                raise RuntimeError(f"the tests of {module} fail without a mutation; run them first.")
            for line, text in mutants(original):
                if chance.random() > options.fraction or time.monotonic() - began > options.limit:
                    continue
                path.write_text(text)
                tried += 1
                if is_killed(copied, TESTS[module]):
                    killed += 1
                else:
                    print(f"survives: {module}.py:{line}  {original.splitlines()[line - 1].strip()}", flush=True)
            path.write_text(original)
    print(f"{killed} of {tried} mutants killed, {killed / max(tried, 1):.0%}")
    return int(killed < 0.85 * tried)


if __name__ == "__main__":
    sys.exit(main())
