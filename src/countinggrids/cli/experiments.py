"""`countinggrids reproduce`: the tables and figures of the paper."""

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from countinggrids.cli import common, progress


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="station, trees, figure2, scenes15, indoor67, places, sequences, clustering, panning, or all."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of reports, figures and cached steps.")] = Path(
        "results/reproduce"
    ),
    data: Annotated[Path | None, typer.Option(envvar="COUNTINGGRIDS_DATA", help="Folder of the data sets.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version that shows that everything runs.")] = False,
    splits: Annotated[int, typer.Option(min=1, help="Number of random splits or seeds.")] = 5,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore cached steps.")] = False,
    results: Annotated[
        Path | None, typer.Option(help="Folder of pages, one for each report; what is written by hand there stays.")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Reproduce tables and figures of the paper, next to its numbers; steps are cached."""
    with common.errors():
        from sklearn.exceptions import ConvergenceWarning

        from countinggrids.reproduce import NAMES, write_pages
        from countinggrids.reproduce import reproduce as run

        if data is not None and not data.is_dir():
            raise ValueError(f"--data={data} must be a folder; correct --data or COUNTINGGRIDS_DATA.")
        common.check_apart([("--data", data)], [("--output", output), ("--results", results)])
        if results is not None and results.is_file():
            raise ValueError(f"--results={results} must be a folder, but it is a file; name a folder for the pages.")
        warnings.simplefilter("ignore", ConvergenceWarning)
        options: dict[str, Any] = {"data": data, "is_quick": quick, "n_splits": splits, "is_fresh": fresh}
        output.mkdir(parents=True, exist_ok=True)
        for each in NAMES if name == "all" else [name]:
            report = run(each, output, **options, log=common.log, progress=progress.spinner)
            print(json.dumps(asdict(report)) if as_json else report.text(), flush=True)
        if results is not None:
            write_pages(output, NAMES, results)
