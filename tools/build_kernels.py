"""Compile the loops of src/countinggrids/kernels/loops.c: python tools/build_kernels.py

The build backend does this too, for wheels and for editable installations. Where there is no compiler the package is
built without them, and works, slower. CC names another compiler than cc.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script
    BuildHookInterface = object

KERNELS = Path(__file__).parents[1] / "src" / "countinggrids" / "kernels"
FLAGS = ["-O3", "-std=gnu11", "-shared", "-fPIC", "-ffp-contract=fast", "-fno-math-errno"]


def compile_loops() -> Path | None:
    """Compile the loops beside their source; return the library, or None where that is impossible."""
    source, library = KERNELS / "loops.c", KERNELS / "_loops.library"
    if library.is_file() and library.stat().st_mtime >= source.stat().st_mtime:
        return library
    partial = library.with_suffix(f".{os.getpid()}")
    command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, str(source), "-o", str(partial)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        partial.unlink(missing_ok=True)
        library.unlink(missing_ok=True)
        print(f"built without compiled loops: {getattr(error, 'stderr', None) or error}", file=sys.stderr)
        return None
    os.replace(partial, library)
    return library


class KernelsHook(BuildHookInterface):  # type: ignore[misc]
    """Puts the compiled loops into a wheel, which then belongs to this kind of machine, but to any Python 3."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is made."""
        library = compile_loops()
        if library is None:
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append("src/countinggrids/kernels/_loops.library")


if __name__ == "__main__":
    sys.exit(compile_loops() is None)
