"""What an experiment found: tables with the paper's figures beside ours, a picture, and notes."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from countinggrids import files

HEADING = """# Results

This page is written by `countinggrids reproduce NAME --results docs/results.md`, one experiment after the other; each
section tells its command. Times, memory and the explorer are in [benchmarks.md](benchmarks.md). Hyper-parameters are
chosen on training data only, or set; where that is not wholly so, the section says it. Where it says so, a figure is a
mean and a standard deviation over random splits or seeds. The paper is A. Perina and N. Jojic, "Capturing spatial
interdependence in image features".
"""


@dataclass
class Table:
    """A table of a report.

    Attributes
    ----------
    caption : what it shows, in a few words
    header : names of the columns
    rows : cells, texts
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Give the table as Markdown."""
        lines = ["| " + " | ".join(row) + " |" for row in [self.header, ["---"] * len(self.header), *self.rows]]
        return f"**{self.caption}**\n\n" + "\n".join(lines)


@dataclass
class Report:
    """What an experiment found.

    Attributes
    ----------
    name : of the experiment
    title : what it is about
    data : on which data it ran, and what it stands in for
    tables : what came out
    notes : what to know about it: protocol, settings chosen, what did not help
    picture : file name of the picture, beside the report
    commits, seconds, is_quick : at which commits it was made, how long it took, and whether it is the small version
    n_splits : random splits, or seeds, that were asked for
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

    def text(self) -> str:
        """Give the report as a section of a Markdown page."""
        kind = "quick version, " if self.is_quick else ""
        options = " --quick" if self.is_quick else f" --splits {self.n_splits}"
        commits = ", ".join(self.commits) or "unknown"
        made = f"`countinggrids reproduce {self.name}{options}`, {kind}at commit {commits}, "
        made += f"{self.seconds / 60:.0f} minutes" if self.seconds >= 90 else f"{self.seconds:.0f} seconds"
        parts = [f"## {self.title}", f"{made}. {self.data}", *(table.text() for table in self.tables)]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    def save(self, folder: Path) -> None:
        """Write the report into a folder, for programs and for people."""
        files.write_text(folder / f"{self.name}.json", json.dumps(asdict(self), indent=1))
        files.write_text(folder / f"{self.name}.md", self.text())

    @classmethod
    def load(cls, path: Path) -> "Report":
        """Read a report that `save` wrote."""
        facts = json.loads(path.read_text(encoding="utf-8"))
        tables = [Table(**table) for table in facts.pop("tables")]
        return cls(tables=tables, **facts)


def page(folder: Path, names: Sequence[str], before: str = "") -> str:
    """Put the reports of a folder together into one page.

    Parameters
    ----------
    folder : where the reports are
    names : of the experiments, in the order of the page
    before : the page as it was: its sections are kept where the folder has no report
    """
    sections = {}
    for section in re.split(r"\n(?=## )", before):
        if made_by := re.search(r"`countinggrids reproduce (\w+)", section):
            sections[made_by[1]] = section.rstrip("\n") + "\n"
    for name in names:
        if (path := folder / f"{name}.json").is_file():
            sections[name] = Report.load(path).text()
    return "\n".join([HEADING, *(sections[name] for name in names if name in sections)])


def spread(shares: Sequence[float] | Any) -> str:
    """Write shares as a percentage, with their standard deviation if there are several."""
    values = 100 * np.asarray(shares, dtype=float)
    return f"{values.mean():.1f}" if values.size == 1 else f"{values.mean():.1f} +- {values.std():.1f}"


def figure(width: float, height: float) -> Any:
    """Make an empty figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained", dpi=120)
    FigureCanvasAgg(made)
    return made
