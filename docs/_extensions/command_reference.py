"""Write the reference of the commands from their --help, before the pages are read."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from countinggrids.cli import app as command_line

INTRODUCTION = """\
# Commands

This page is the output of `--help` of each command. Data go to stdout, progress to stderr; `--json` prints JSON for
programs. Exit codes are in [limits](../limits.md#exit-codes-of-the-commands).
"""


def commands(command: Any, name: str) -> Iterator[str]:
    """Yield the names of a command and of all commands below it."""
    yield name
    for child in getattr(command, "commands", {}):
        yield from commands(command.commands[child], f"{name} {child}")


def help_of(name: str) -> str:
    """Return the help of a command as plain text."""
    code = "from countinggrids.cli import app; app(prog_name='countinggrids')"
    plain = {"COLUMNS": "92", "TERM": "dumb", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", code, *name.split()[1:], "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | plain)
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def write(app: Any) -> None:
    """Write the page, if it has changed."""
    parts = [INTRODUCTION]
    for name in commands(typer.main.get_command(command_line), "countinggrids"):
        parts.append(f"\n## {name}\n\n```text\n{help_of(name)}\n```\n")
    page = Path(app.srcdir) / "reference" / "commands.md"
    text = "".join(parts)
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    """Write the page before sources are read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
