"""Comparison of classifiers, as in the tables of the paper: every system is evaluated on every split."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import Problem
from countinggrids.reproduce.report import Table, comparison_table
from countinggrids.reproduce.systems import ON_SEQUENCES, SYSTEMS, evaluate

REFERENCE = "counting grid 1x1"


def compare(
    experiment: Experiment,
    name: str,
    split: Callable[[int], Problem],
    paper: Mapping[str, float | None],
    settings: Mapping[str, Any],
    systems: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    reference: str = REFERENCE,
) -> tuple[Table, list[str]]:
    """Evaluate systems on every split.

    Parameters
    ----------
    experiment : Experiment
        The experiment, which caches the steps.
    name : str
        Name of the comparison.
    split : callable
        Returns the problem of a seed.
    paper : dict
        Values of the paper by system.
    settings : dict
        What else the results depend on.
    systems : sequence of str, default=None
        Systems; None takes all but those of sequences.
    seeds : sequence of int, default=None
        Splits; None takes those of the experiment.
    reference : str
        System that differences are computed from.

    Returns
    -------
    table : Table
        Accuracy of each system, with paired differences from the reference.
    notes : list of str
        The settings that were selected in the first split.
    """
    seeds = experiment.seeds if seeds is None else seeds
    systems = [each for each in SYSTEMS if each not in ON_SEQUENCES] if systems is None else systems
    accuracy: dict[str, list[float]] = {system: [] for system in systems}
    selected: dict[str, str] = {}
    for seed in seeds:
        problem = cache(partial(split, seed))  # bags are computed when the first system needs them
        for system in systems:
            step = f"{name}, split {seed}: {system}"
            result = experiment.step(step, dict(settings) | {"seed": seed}, partial(evaluate, problem, system))
            accuracy[system].append(result["accuracy"])
            selected.setdefault(system, result["settings"])
    splits = f", {len(seeds)} splits" if len(seeds) > 1 else ""
    table = comparison_table(f"Accuracy{splits}", {"accuracy, %": accuracy}, reference, paper or None)
    return table, ["Settings in the first split: " + "; ".join(f"{each}: {selected[each]}" for each in systems) + "."]
