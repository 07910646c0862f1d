"""An experiment: its data, its size, and the results of its steps, which are cached in files.

A cached step is valid for one state of the code: its file name holds a digest of the sources of every package that
results depend on, and of the experiment itself.
"""

import ast
import json
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from countinggrids.data import container
from countinggrids.data.collection import Collection

Settings = Mapping[str, Any]
SOURCES = Path(__file__).parents[1]
"""Folder of the package."""
PACKAGES = (
    "core",
    "kernels",
    "backends",
    "training",
    "data",
    "datasets",
    "models",
    "features",
    "meta",
    "baselines",
)
"""Packages that results depend on; plot, explore and cli only present them."""
PRESENTATION = ("report.py", "experiment.py", "__init__.py")
"""Modules of this package that results do not depend on."""


@dataclass
class Experiment:
    """One run of one experiment.

    Parameters
    ----------
    name : str
        Module of the experiment in `countinggrids.reproduce`.
    folder : Path
        Folder of reports, figures and cached steps.
    data : Path, default=None
        Folder of the data sets.
    is_quick : bool, default=False
        Whether to run a small version, which only shows that everything works.
    n_splits : int, default=5
        Number of random splits, or seeds, of the full version.
    is_fresh : bool, default=False
        Whether to compute cached steps again.
    log : callable, default=print
        Called with a line of text before each step that is computed.
    progress : callable, default=nullcontext
        Returns a context manager for a line of text, which is entered while a step is computed.
    commits : set of str
        Commits at which the steps were computed that have been used so far.
    seconds : float
        Time that it took to compute them.
    """

    name: str
    folder: Path
    data: Path | None = None
    is_quick: bool = False
    n_splits: int = 5
    is_fresh: bool = False
    log: Callable[[str], Any] = print
    progress: Callable[[str], AbstractContextManager[Any]] = nullcontext
    commits: set[str] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def seeds(self) -> range:
        """Seeds of the random splits: one in the quick version."""
        return range(1 if self.is_quick else self.n_splits)

    def step(self, name: str, settings: Settings, compute: Callable[[], Any]) -> Any:
        """Return the result of a step, which is computed unless it is cached for these settings and this code.

        Parameters
        ----------
        name : str
            Name of the step.
        settings : dict
            What else the result depends on, as JSON.
        compute : callable
            Computes the result, as JSON.

        Returns
        -------
        value : object
            The result.
        """
        path = self._path(name, settings, ".json")
        if self.is_fresh or not path.is_file():
            self.log(name)
            began = time.perf_counter()
            with self.progress(name):
                value = compute()
            facts = {"step": name, "settings": settings, "value": value, "code": self.code}
            facts |= {"seconds": round(time.perf_counter() - began, 1), "commit": self.commit}
            container.write_text(path, json.dumps(facts, indent=1))
        facts = json.loads(path.read_text(encoding="utf-8"))
        self.commits.add(facts["commit"])
        self.seconds += facts["seconds"]
        return facts["value"]

    def collection(self, name: str, settings: Settings, compute: Callable[[], Collection]) -> Collection:
        """Return a collection, which is computed unless it is cached for these settings and this code."""
        path = self._path(name, settings, ".cg")
        if self.is_fresh or not path.is_file():
            self.log(name)
            compute().save(path)
        return Collection.load(path)

    def unpacked(self, name: str) -> Path | None:
        """Return the folder of a data set that comes as an archive, or None if it is unavailable."""
        if self.data is None or not (self.data / f"{name}.tar").is_file():
            return None
        folder = self._steps / "data" / name
        if not folder.is_dir():
            self.log(f"unpacking {name}")
            folder.parent.mkdir(exist_ok=True)
            with (
                tarfile.open(self.data / f"{name}.tar") as archive,
                tempfile.TemporaryDirectory(dir=self._steps) as unfinished,
            ):
                archive.extractall(unfinished, filter="data")
                Path(unfinished, name).rename(folder)
        return folder.parent

    def missing(self, *names: str) -> ValueError:
        """Return an error about files that are not in the folder of the data sets, with the folder."""
        looked = "no folder, because --data is not set" if self.data is None else str(self.data.absolute())
        files = " and ".join(names)
        return ValueError(
            f"{files} must be in the folder of the data sets (looked in {looked}); set --data or COUNTINGGRIDS_DATA to "
            "it."
        )

    @cached_property
    def code(self) -> str:
        """Digest of all code that the steps depend on."""
        return source_digest(self.name)

    @cached_property
    def commit(self) -> str:
        """The current commit, with a plus if the package has uncommitted changes."""
        command = ["git", "-C", str(SOURCES)]
        try:
            name, changes = (
                subprocess.run([*command, *arguments], capture_output=True, text=True, check=True).stdout.strip()
                for arguments in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "."])
            )
        except (OSError, subprocess.CalledProcessError):
            return "unknown"
        return name + ("+" if changes else "")

    @cached_property
    def _steps(self) -> Path:
        folder = self.folder / "steps"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _path(self, name: str, settings: Settings, ending: str) -> Path:
        key = json.dumps([name, settings, self.is_quick, self.code], sort_keys=True)
        short = "".join(letter if letter.isalnum() else "-" for letter in name.lower())
        return self._steps / f"{short}-{sha256(key.encode()).hexdigest()[:10]}{ending}"


def source_digest(name: str, sources: Path = SOURCES) -> str:
    """Return a digest of the sources that the results of an experiment depend on.

    Parameters
    ----------
    name : str
        The experiment.
    sources : Path
        Folder of the package.

    Returns
    -------
    digest : str
        Changes with any module of `PACKAGES`, with that of the experiment, and with those that it imports from
        `countinggrids.reproduce`.
    """
    files = [path for package in PACKAGES for path in (sources / package).rglob("*.py")]
    files += _with_imports(sources / "reproduce", f"{name}.py")
    digest = sha256()
    for path in sorted(files):
        digest.update(str(path.relative_to(sources)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _with_imports(folder: Path, name: str) -> set[Path]:
    """Return the files of a module and of those that it imports from its folder, directly or not."""
    found: set[Path] = set()
    waiting = [name]
    while waiting:
        path = folder / waiting.pop()
        if path in found or path.name in PRESENTATION or not path.is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("countinggrids.reproduce"):
                names = [*(node.module or "").split(".")[2:3], *(alias.name for alias in node.names)]
                waiting += [f"{each}.py" for each in names]
    return found
