"""Print constraints that pin every dependency to its oldest allowed version: python tools/oldest_dependencies.py

pip install -c FILE with the output installs what the lower bounds in pyproject.toml promise to support. Tools of the
extras for development are not pinned.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
DEVELOPMENT = {"test", "docs", "release"}
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\d.]+)")


def requirements(project: dict[str, dict[str, list[str]]]) -> list[str]:
    """List the requirements that users install."""
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name not in DEVELOPMENT}
    every = [*project["dependencies"], *(need for needs in extras.values() for need in needs)]
    return [need for need in every if not need.startswith("countinggrids")]


def constraint(requirement: str) -> tuple[str, tuple[int, ...]]:
    """Return the name and the lower bound of a requirement."""
    match = REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise ValueError(f"{requirement!r} must be NAME>=VERSION; correct it in {PROJECT.name}.")
    return match[1], tuple(map(int, match[2].split(".")))


def constraints(needs: list[str]) -> list[str]:
    """Return a line for each package, with the largest of its lower bounds; fixes of that version are allowed."""
    bounds: dict[str, tuple[int, ...]] = {}
    for name, bound in map(constraint, needs):
        bounds[name] = max(bound, bounds.get(name, bound))
    return [f"{name}=={'.'.join(map(str, (*bound, 0)[: max(2, len(bound))]))}.*" for name, bound in bounds.items()]


if __name__ == "__main__":
    print("\n".join(constraints(requirements(tomllib.loads(PROJECT.read_text())["project"]))))
