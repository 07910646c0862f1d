"""The command line: parse, call, print. Data goes to stdout, progress to stderr; wrong use exits with 2."""

from typing import Annotated, Any

import typer

import countinggrids
from countinggrids.cli import bag, bag_text, experiments, explore, map, meta, models, pipes, plots, recognize


class App(typer.Typer):
    """The command; it exits with 141 when the reader of stdout closes it, as `| head -1` does."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        with pipes.closable():
            return super().__call__(*args, **options)


app = App(
    help="Counting grids: models of bags of features as windows on a torus, in which similar bags are neighbors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(models.demo)
app.command("map")(map.draw_map)
bag.app.command()(bag_text.text)
app.add_typer(bag.app, name="bag")
app.command()(models.fit)
app.command()(models.info)
app.command()(models.locate)
app.command()(models.score)
app.command()(meta.classify)
app.command()(meta.search)
app.command()(meta.track)
app.command()(recognize.recognize)
app.command()(meta.cluster)
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
