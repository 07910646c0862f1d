"""Validate docstrings with numpydoc: python tools/docstrings.py [package ...]

Public classes, methods and functions must document every parameter and what they return. Other docstrings need a
summary, and where they have sections these must be complete.
"""

import importlib
import inspect
import pkgutil
import sys

from numpydoc.validate import validate

import countinggrids

PUBLIC = ("countinggrids", "countinggrids.features", "countinggrids.datasets", "countinggrids.plot")
PUBLIC += ("countinggrids.explore", "countinggrids.baselines")
EVERYWHERE = {"SS02", "SS03", "SS04", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "RT03", "GL07"}
"""Summaries, and parameters in order, with types and descriptions."""
COMPLETE = EVERYWHERE | {"GL08", "SS05", "PR01"}
"""The same, with nothing missing and an imperative summary."""


def modules():
    for found in pkgutil.walk_packages(countinggrids.__path__, "countinggrids."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def public_names():
    """List the qualified names of what users import, and of its methods."""
    names = set()
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                names |= {qualified(each) for each in (thing, *inherited_methods(thing))}
    return names


def methods_of(thing):
    if not inspect.isclass(thing):
        return []
    members = vars(thing).items()
    return [value for name, value in members if not name.startswith("_") and inspect.isfunction(value)]


def inherited_methods(thing):
    """List the methods of a class, with those of the bases that are ours."""
    bases = inspect.getmro(thing) if inspect.isclass(thing) else ()
    return [method for base in bases if base.__module__.startswith("countinggrids.") for method in methods_of(base)]


def documented(module):
    """List what a module itself defines and documents."""
    for name, thing in vars(module).items():
        is_own = getattr(thing, "__module__", None) == module.__name__
        if is_own and (inspect.isclass(thing) or inspect.isfunction(thing)) and not name.startswith("_"):
            yield thing
            yield from methods_of(thing)


def qualified(thing):
    return f"{thing.__module__}.{thing.__qualname__}"


def faults(thing, public):
    """Yield what is wrong with a docstring."""
    name = qualified(thing)
    if "<locals>" in name or (thing.__doc__ is None and name not in public):
        return
    checks = COMPLETE if name in public else EVERYWHERE
    for code, message in validate(name)["errors"]:
        if code in checks and not (code == "PR01" and "{'y'}" in message):
            yield f"{name}: {code} {message}"


def main(packages):
    public = public_names()
    found = []
    for module in modules():
        parts = module.__name__.split(".")
        if packages and (len(parts) < 2 or parts[1] not in packages):
            continue
        for thing in documented(module):
            found += faults(thing, public)
    print("\n".join(sorted(set(found))))
    print(f"{len(set(found))} faults in docstrings", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
