"""Build the wheel and the sdist, check them, and try each in an empty environment: python tools/release_check.py

--version prints the version that a release would have. Needs the packages build and twine. Writes to dist/.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
TRIAL = """
import sys, numpy as np, countinggrids as cg
X = np.random.default_rng(0).integers(5, size=(30, 12))
model = cg.CountingGrid((6, 6), (3, 3), random_state=0).fit(X)
model.save(sys.argv[1])
assert np.array_equal(cg.load(sys.argv[1]).transform(X), model.transform(X))
print(cg.__version__)
"""
"""A fit, a file and a prediction, with the dependencies of the core alone."""


def version() -> str:
    """Return the version as it is written in the package."""
    text = (ROOT / "src" / "countinggrids" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise ValueError('src/countinggrids/__init__.py has no line __version__ = "..."; add it.')
    return found[1]


def run(*command: object, **options: object) -> str:
    """Run a command; return what it printed, or raise with it."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def names_in(archive: Path) -> set[str]:
    """List the files in a wheel or an sdist."""
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as opened:
        return {name.partition("/")[2] for name in opened.getnames()}


def check_contents(archive: Path) -> None:
    """Raise unless an archive has all that the package needs and nothing else."""
    prefix = "" if archive.suffix == ".whl" else "src/"
    package = ROOT / "src" / "countinggrids"
    built = {"__pycache__"} if archive.suffix == ".whl" else {"__pycache__", "_loops.library"}
    wanted = [path for path in package.rglob("*") if path.is_file() and not built & set(path.parts)]
    names = names_in(archive)
    missing = {f"{prefix}countinggrids/{path.relative_to(package).as_posix()}" for path in wanted} - names
    foreign = {name for name in names if re.search(r"__pycache__|\.pyc$|\.cg$|(^|/)results/", name)}
    if missing or foreign:
        raise RuntimeError(
            f"{archive.name} lacks {sorted(missing)} and has {sorted(foreign)} that do not belong there."
        )


def build() -> list[Path]:
    """Build both archives into an empty dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    archives = sorted(DIST.iterdir())
    if sorted(path.suffix for path in archives) != [".gz", ".whl"]:
        raise RuntimeError(f"dist/ has {[path.name for path in archives]}; expected a wheel and an sdist.")
    run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    return archives


def megabytes(folder: Path) -> float:
    """Return the size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def attempt(archive: Path, folder: Path) -> str:
    """Install an archive into an empty environment, use it there, and return a line about it."""
    venv.create(folder, with_pip=True)
    python, packages = folder / "bin" / "python", next(folder.glob("lib/python*/site-packages"))
    before, began = megabytes(packages), time.monotonic()
    # No compiler: what has to be compiled must come as a wheel.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"CC": "/bin/false", "CXX": "/bin/false"}
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", archive, env=environment)
    seconds, size = time.monotonic() - began, megabytes(packages) - before
    printed = run(python, "-c", TRIAL, folder / "model.cg", cwd=folder, env=environment).strip()
    if printed != version():
        raise RuntimeError(f"{archive.name} has version {printed}; expected {version()}.")
    command = folder / "bin" / "countinggrids"
    run(command, "info", folder / "model.cg", cwd=folder, env=environment)
    run(command, "--help", cwd=folder, env=environment)
    kilobytes = archive.stat().st_size / 1e3
    return f"{archive.name}: {kilobytes:.0f} kB; with dependencies {size:.0f} MB, installed in {seconds:.0f} s"


def main() -> None:
    """Check a release, or print its version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="store_true", help="only print the version")
    if parser.parse_args().version:
        print(version())
        return
    for archive in build():
        check_contents(archive)
        with tempfile.TemporaryDirectory() as folder:
            print(attempt(archive, Path(folder) / "venv"), flush=True)


if __name__ == "__main__":
    main()
