"""Locks on files that a process writes for a long time; a second process learns who holds one.

The system releases a lock when its process ends, also when it is killed.
"""

import errno
import json
import os
import platform
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        # Windows also keeps others from reading what is locked, so it is a byte behind the text.
        os.lseek(handle, 2**20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


HELD = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
"""Errors when another process holds the lock."""
UNAVAILABLE = (errno.ENOSPC, errno.EDQUOT, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors when the disk is full, or its file system has no locks."""


class Lock:
    """A lock on a file, held in a `with` statement; it is a hidden file beside it that names its holder.

    Parameters
    ----------
    path : Path
        The file, which need not exist; its folder must.
    """

    def __init__(self, path: Path):
        self.path, self.file = path, path.with_name(f".{path.name}.countinggrids-lock")
        self.handle: int | None = None

    def __enter__(self) -> "Lock":
        while self.handle is None:
            try:
                handle = os.open(self.file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
                self.handle = self._taken(handle)
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno not in UNAVAILABLE:
                    raise OSError(error.errno, f"{self.path} could not be locked ({error.strerror}).") from error
                warnings.warn(f"{self.path} is not locked ({error.strerror}); use it in one fit only.", stacklevel=2)
                break
        return self

    def __exit__(self, *_: Any) -> None:
        if self.handle is None:
            return
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(self.handle)
            with suppress(OSError):
                self.file.unlink()
        else:  # where another process could lock a file after it is closed and before it is removed
            self.file.unlink(missing_ok=True)
            os.close(self.handle)
        self.handle = None

    def _taken(self, handle: int) -> int | None:
        """Lock an open file and write its holder into it; return None if its last holder removed it meanwhile."""
        try:
            _take(handle)
            if self._is_there(handle):
                with suppress(OSError):  # on a full disk the lock has no text
                    os.truncate(handle, 0)
                    os.write(handle, json.dumps(_holder()).encode())
                return handle
        except OSError as error:
            found = _read(handle)
            os.close(handle)
            if error.errno not in HELD:
                raise
            raise BlockingIOError(
                f"checkpoint={str(self.path)!r} is in use by {found}; wait for that fit, or use another checkpoint."
            ) from None
        os.close(handle)
        return None

    def _is_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.file))
        except FileNotFoundError:
            return False


def _holder() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}


def _read(handle: int) -> str:
    """Return the holder that the file of a lock names."""
    try:
        found = json.loads(os.read(handle, 4096))
        return f"process {found['pid']} on {found['host']} since {found['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
