"""Reports of experiments: tables with the values of the paper beside ours, paired differences, and the protocol."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from countinggrids.data import container

Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""For each measure and each model the value of every split."""


@dataclass
class Table:
    """A table of a report.

    Parameters
    ----------
    caption : str
        What it shows.
    header : sequence of str
        Names of the columns.
    rows : sequence of sequence of str
        Cells.
    values : dict, default={}
        For each measure and each row the value of every split, not rounded.
    reference : str, default=""
        Row that differences are computed from.
    differences : dict, default={}
        For each measure and each row the mean, the standard deviation and the number of the paired differences.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    reference: str = ""
    differences: dict[str, dict[str, dict[str, float | None]]] = field(default_factory=dict)

    def text(self) -> str:
        """Return the table as Markdown."""
        lines = ["| " + " | ".join(row) + " |" for row in [self.header, ["---"] * len(self.header), *self.rows]]
        return f"**{self.caption}**\n\n" + "\n".join(lines)


@dataclass
class Report:
    """The results of an experiment.

    Parameters
    ----------
    name : str
        The experiment.
    title : str
        Heading of its section.
    data : str
        The data that it ran on, and what they stand in for.
    tables : list of Table
        Results.
    notes : list of str, default=[]
        Protocol and settings. What the results mean is written by hand, elsewhere.
    picture : str, default=""
        File name of the figure, beside the report.
    commits : list of str, default=[]
        Commits at which the steps were computed.
    seconds : float, default=0.0
        Time that the steps took.
    is_quick : bool, default=False
        Whether it is the small version.
    n_splits : int, default=0
        Number of random splits, or seeds.
    shows_data : bool, default=False
        Whether the figure shows parts of the data, so that it does not go into published pages.
    """

    name: str
    title: str
    data: str
    tables: list[Table]
    notes: list[str] = field(default_factory=list)
    picture: str = ""
    commits: list[str] = field(default_factory=list)
    seconds: float = 0.0
    is_quick: bool = False
    n_splits: int = 0
    shows_data: bool = False

    def text(self) -> str:
        """Return the report as a Markdown page."""
        kind = "quick version, " if self.is_quick else ""
        options = " --quick" if self.is_quick else f" --splits {self.n_splits}"
        commits = ", ".join(self.commits) or "unknown"
        made = f"`countinggrids reproduce {self.name}{options}`, {kind}at commit {commits}, "
        made += f"{self.seconds / 60:.0f} minutes" if self.seconds >= 90 else f"{self.seconds:.0f} seconds"
        parts = [f"# {self.title}", f"{made}. {self.data}", *(table.text() for table in self.tables)]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    def save(self, folder: Path) -> None:
        """Write the report into a folder, as JSON and as Markdown."""
        container.write_text(folder / f"{self.name}.json", json.dumps(asdict(self), indent=1))
        container.write_text(folder / f"{self.name}.md", self.text())

    @classmethod
    def load(cls, path: Path) -> "Report":
        """Read a report that `save` wrote."""
        facts = json.loads(path.read_text(encoding="utf-8"))
        tables = [Table(**table) for table in facts.pop("tables")]
        return cls(tables=tables, **facts)


def comparison_table(
    caption: str,
    scores: Scores,
    reference: str,
    paper: Mapping[str, float | None] | None = None,
    factor: float = 100,
    digits: int = 1,
) -> Table:
    """Return a table of models with their paired differences from a reference.

    Parameters
    ----------
    caption : str
        What it shows.
    scores : dict of dict of list of float
        For each measure and each model the value of every split, in the same order.
    reference : str
        Model that differences are computed from.
    paper : dict, default=None
        Values of the paper by model, which are printed as they are.
    factor : float, default=100
        Factor of the printed values: 100 for percentages.
    digits : int, default=1
        Decimals of the printed values.

    Returns
    -------
    table : Table
        Means and standard deviations over splits, rounded; `values` and `differences` hold them for programs.
    """
    values = {
        measure: {name: list(map(float, each)) for name, each in models.items()} for measure, models in scores.items()
    }
    names = list(next(iter(values.values())))
    header, rows = ["model"], [[name] for name in names]
    differences: dict[str, dict[str, dict[str, float | None]]] = {}
    for measure, models in values.items():
        header += [measure, "difference"]
        differences[measure] = {}
        for row, name in zip(rows, names, strict=True):
            paired = np.subtract(models[name], models[reference])
            differences[measure][name] = _summary(paired)
            row.append(mean_and_spread(models[name], factor, digits))
            row.append("reference" if name == reference else mean_and_spread(paired, factor, digits, sign="+"))
    if paper is not None:
        header.append("paper")
        for row, name in zip(rows, names, strict=True):
            value = paper.get(name)
            row.append("" if value is None else f"{value:.1f}")
    caption = f"{caption}; differences from {reference}, paired by split"
    return Table(caption, header, rows, values, reference, differences)


def mean_and_spread(values: Sequence[float] | Any, factor: float = 100, digits: int = 1, sign: str = "") -> str:
    """Return the mean as text, with the standard deviation if there are several values."""
    scaled = factor * np.asarray(values, dtype=float)
    mean = f"{scaled.mean():{sign}.{digits}f}"
    return mean if scaled.size == 1 else f"{mean} +- {scaled.std():.{digits}f}"


def _summary(differences: Any) -> dict[str, float | None]:
    has_spread = differences.size > 1
    return {
        "mean": float(differences.mean()),
        "std": float(differences.std()) if has_spread else None,
        "n_splits": int(differences.size),
    }


def write_pages(reports: Path, names: Sequence[str], pages: Path) -> None:
    """Write a page for each report of a folder, with its JSON and its figure beside it.

    Parameters
    ----------
    reports : Path
        Folder of the reports.
    names : sequence of str
        Experiments. Pages of those without a report stay as they are.
    pages : Path
        Folder of the pages. What stands under headings of the second level, written by hand, is kept.
    """
    pages.mkdir(parents=True, exist_ok=True)
    for name in names:
        if not (reports / f"{name}.json").is_file():
            continue
        report, path = Report.load(reports / f"{name}.json"), pages / f"{name}.md"
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        _, heading, by_hand = before.partition("\n## ")
        text = report.text()
        if report.picture and not report.shows_data:
            shutil.copyfile(reports / report.picture, pages / report.picture)
            text += f"\n![{report.title}]({report.picture})\n"
        container.write_text(path, text + heading + by_hand)
        shutil.copyfile(reports / f"{name}.json", pages / f"{name}.json")


def figure(width: float, height: float) -> Any:
    """Return an empty figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained", dpi=120)
    FigureCanvasAgg(made)
    return made
