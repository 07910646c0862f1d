"""A process of its own for inputs that may crash, hang or take all memory: a crash fails a test and does not end it."""

import os
import resource
import subprocess
import sys

ADDRESS_SPACE = 4 * 2**30
"""Bytes that such a process may reserve; libraries alone reserve one and a half gigabytes."""


def run(code, *arguments, seconds=60, **environment):
    """Run Python code with bounds; return the process, with what it wrote."""

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        preexec_fn=bound,
        check=False,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )
