"""`python -m countinggrids` is the command `countinggrids`."""

from countinggrids.cli import app

if __name__ == "__main__":
    app(prog_name="countinggrids")
