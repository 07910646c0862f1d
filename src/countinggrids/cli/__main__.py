"""`python -m countinggrids.cli`."""

from countinggrids.cli import app

app(prog_name="countinggrids")
