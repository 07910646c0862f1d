"""The command line: parse, call, print. Data goes to stdout, progress to stderr; wrong use exits with 2."""

from typing import Annotated

import typer

import countinggrids
from countinggrids.cli import bag, experiments, explore, models, plots, uses

app = typer.Typer(
    help="Counting grids: lay bags of features out on a torus, so that nearby windows explain similar bags.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(models.demo)
app.add_typer(bag.app, name="bag")
app.command()(models.fit)
app.command()(models.info)
app.command()(models.locate)
app.command()(models.score)
app.command()(uses.classify)
app.command()(uses.search)
app.command()(uses.track)
app.command()(uses.cluster)
app.command()(plots.plot)
app.command()(plots.movie)
app.command()(explore.browse)
app.command()(explore.export)
app.command()(experiments.reproduce)


def _version(is_asked: bool) -> None:
    if is_asked:
        print(countinggrids.__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
