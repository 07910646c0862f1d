"""`countinggrids reproduce`: the paper's tables and figures, made again."""

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from countinggrids.cli import common


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="station, trees, figure2, scenes15, indoor67, places, sequences, clustering, panning, or all."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for reports, pictures and the results of steps.")
    ] = Path("results/reproduce"),
    data: Annotated[Path | None, typer.Option(envvar="COUNTINGGRIDS_DATA", help="Folder of the data sets.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version that only shows that all works.")] = False,
    splits: Annotated[int, typer.Option(min=1, help="Random splits, or seeds.")] = 5,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do again what was done before.")] = False,
    results: Annotated[
        Path | None, typer.Option(help="A page to write all reports of the folder into; other sections of it stay.")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Make the paper's tables and figures again, ours beside the paper's; what was done before is not done twice."""
    with common.errors():
        from sklearn.exceptions import ConvergenceWarning

        from countinggrids import files
        from countinggrids.reproduce import NAMES, Workshop, page, reproduce

        if data is not None and not data.is_dir():
            raise ValueError(f"{data} is no folder; wanted that of the data sets; check --data or COUNTINGGRIDS_DATA")
        warnings.simplefilter("ignore", ConvergenceWarning)
        shop = Workshop(output, data, quick, splits, fresh, common.say, common.working)
        output.mkdir(parents=True, exist_ok=True)
        for each in NAMES if name == "all" else [name]:
            report = reproduce(each, shop)
            print(json.dumps(asdict(report)) if as_json else report.text(), flush=True)
        if results is not None:
            before = results.read_text(encoding="utf-8") if results.is_file() else ""
            files.write_text(results, page(output, NAMES, before))
