"""The contest of classifiers that the paper's tables report: every contender tries every split."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from countinggrids.reproduce.contenders import CONTENDERS, ON_WALKS, Later, Problem, tried
from countinggrids.reproduce.report import Table, spread
from countinggrids.reproduce.workshop import Workshop


def contest(
    shop: Workshop, name: str, split: Callable[[int], Problem], paper: Mapping[str, float], settings: Mapping[str, Any],
    contenders: Sequence[str] | None = None, seeds: Sequence[int] | None = None,
) -> tuple[Table, list[str]]:  # fmt: skip
    """Let the contenders try every split; give the table, and what was chosen in the first split.

    Parameters
    ----------
    shop : where to work
    name : of the experiment
    split : gives the problem of a split
    paper : the paper's figures
    settings : what tells this contest from another of the same name
    contenders : who takes part; None takes all but those of walks
    seeds : the splits; None takes the workshop's
    """
    seeds = shop.seeds if seeds is None else seeds
    contenders = [each for each in CONTENDERS if each not in ON_WALKS] if contenders is None else contenders
    shares: dict[str, list[float]] = {contender: [] for contender in contenders}
    chosen: dict[str, str] = {}
    for seed in seeds:
        problem = Later(partial(split, seed))
        for contender in contenders:
            told = dict(settings) | {"seed": seed}
            made = partial(tried, problem, contender)
            found = shop.step(f"{name}, split {seed}: {contender}", told, made)
            shares[contender].append(found["right"])
            chosen.setdefault(contender, found["settings"])
    rows = [[each, spread(shares[each]), f"{paper[each]:.1f}" if each in paper else ""] for each in contenders]
    caption = f"Right, %, {len(seeds)} splits" if len(seeds) > 1 else "Right, %"
    notes = ["Settings in the first split: " + "; ".join(f"{each}: {chosen[each]}" for each in contenders) + "."]
    return Table(caption, ["model", "ours", "the paper's"], rows), notes
