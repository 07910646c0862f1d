"""Names of files: which can be written, which are the same, and which are temporary."""

import os
import re
import secrets
import sys
from contextlib import suppress
from pathlib import Path

UNFINISHED = ".countinggrids-tmp"
"""Suffix of files that are being written."""


def target_of(path: str | os.PathLike[str]) -> Path:
    """Follow links to the file that is to be written, or raise if it cannot be."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} must be a folder to write {target.name}; make it first.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} must be a plain file to be replaced; use another name.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{target.parent} is not writable; use another folder.")
    return target


def is_same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two names lead to one file, also through links, and also if it is yet to be written."""
    one, other = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    is_same_folder = one.parent.exists() and other.parent.exists() and os.path.samefile(one.parent, other.parent)
    return one == other or (is_same_folder and os.path.normcase(one.name) == os.path.normcase(other.name))


def temporary_beside(target: Path) -> Path:
    """Return a new hidden name with that of the target and the number of this process."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(8)}{UNFINISHED}")


def clear_leftovers(target: Path) -> None:
    """Remove temporary files of processes that ended while they wrote a file; nobody may be writing it now."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(\d+)-[0-9a-f]{{16}}{re.escape(UNFINISHED)}")
    with os.scandir(target.parent) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found and entry.is_file(follow_symlinks=False) and not _is_of_another(int(found[1])):
                with suppress(OSError):
                    os.unlink(entry.path)


def _is_of_another(pid: int) -> bool:
    """Return whether a process other than this one lives under a number, or may do so."""
    if pid == os.getpid():
        return False
    if sys.platform == "win32":
        return True  # where os.kill would end it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True
