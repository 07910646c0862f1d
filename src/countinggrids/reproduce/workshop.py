"""Where experiments work: the data, how much to do, and the results of steps already done, kept in files."""

import json
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from countinggrids import files
from countinggrids.collection import Collection

Settings = Mapping[str, Any]


@dataclass
class Workshop:
    """One run of one or several experiments.

    Parameters
    ----------
    folder : where reports, pictures and the results of steps go
    data : folder of the data sets; None where there is none
    is_quick : whether to make a small version that shows that everything works
    n_splits : random splits, or seeds, of the full version
    is_fresh : whether to do again what has been done
    say : told what goes on
    working : shows that a step goes on, for as long as it does

    Attributes
    ----------
    commits : the commits at which the results were made that were used since the last experiment began
    seconds : how long those took when they were made
    """

    folder: Path
    data: Path | None = None
    is_quick: bool = False
    n_splits: int = 5
    is_fresh: bool = False
    say: Callable[[str], None] = print
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext
    commits: set[str] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def seeds(self) -> range:
        """The random splits, or seeds, to make: one in the quick version."""
        return range(1 if self.is_quick else self.n_splits)

    def step(self, name: str, settings: Settings, make: Callable[[], Any]) -> Any:
        """Give what a step finds, as plain data; one done before with these settings by this file is not done again."""
        path = self._path(name, dict(settings) | {"code": _code(make)}, ".json")
        if self.is_fresh or not path.is_file():
            self.say(name)
            began = time.perf_counter()
            with self.working(name):
                value = make()
            kept = {"step": name, "settings": settings, "value": value}
            kept |= {"seconds": round(time.perf_counter() - began, 1), "commit": self.commit}
            files.write_text(path, json.dumps(kept, indent=1))
        found = json.loads(path.read_text(encoding="utf-8"))
        self.commits.add(found["commit"])
        self.seconds += found["seconds"]
        return found["value"]

    def collection(self, name: str, settings: Settings, make: Callable[[], Collection]) -> Collection:
        """Give a collection, from a file if it was made before."""
        path = self._path(name, dict(settings) | {"code": _code(make)}, ".cg")
        if self.is_fresh or not path.is_file():
            self.say(name)
            make().save(path)
        return Collection.load(path)

    def unpacked(self, name: str) -> Path | None:
        """Give the folder of a data set that comes as an archive; None where it is not at hand."""
        if self.data is None or not (self.data / f"{name}.tar").is_file():
            return None
        folder = self._steps / "data" / name
        if not folder.is_dir():
            self.say(f"unpacking {name}")
            with tarfile.open(self.data / f"{name}.tar") as archive:
                archive.extractall(folder.parent, filter="data")
        return folder.parent

    def begin(self) -> None:
        """Forget which results were used so far."""
        self.commits, self.seconds = set(), 0.0

    @cached_property
    def commit(self) -> str:
        """The commit of the code that runs, with a plus if it has been changed since."""
        command = ["git", "-C", str(Path(__file__).parent)]
        try:
            name = subprocess.run(
                [*command, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
            )
            changes = subprocess.run(
                [*command, "status", "--porcelain", "."], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return "unknown"
        return name.stdout.strip() + ("+" if changes.stdout.strip() else "")

    @cached_property
    def _steps(self) -> Path:
        folder = self.folder / "steps"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _path(self, name: str, settings: Settings, ending: str) -> Path:
        facts = json.dumps([name, settings, self.is_quick], sort_keys=True)
        short = "".join(letter if letter.isalnum() else "-" for letter in name.lower())
        return self._steps / f"{short}-{sha256(facts.encode()).hexdigest()[:10]}{ending}"


def _code(make: Callable[[], Any]) -> str:
    """Give a word for the file that a step is written in: another version of it does the step again."""
    function = make.func if isinstance(make, partial) else make
    return sha256(Path(function.__code__.co_filename).read_bytes()).hexdigest()[:10]
