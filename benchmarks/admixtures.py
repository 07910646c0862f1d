"""Componential grids of images: accuracy of one model for each class, beside counting grids and LDA.

    COUNTINGGRIDS_DATA=... python benchmarks/admixtures.py [--parts scenes walks] [--splits 1] [--work FOLDER]

Splits, words and scaling are those of `elastic.py`: 15-Scenes with 100 training images a class, and places along the
walks with a run of every clip held out. Settings of each model are chosen by one fold of the training images. Bags and
scores are kept in the work folder as they are computed.
"""

import argparse
import os
from pathlib import Path

import numpy as np

import countinggrids as cg
from common import table
from countinggrids.baselines import LDA, Tessellated
from elastic import ANNEAL, Steps, evaluated, percent, scene_splits, walk_splits

SECTIONS = (1, 2, 4)
SIZES = {1: ((8, 4), (12, 4)), 2: ((8, 4), (12, 4)), 4: ((12, 8), (16, 8))}
"""Cells of a grid and of its window along each axis, by sections along each axis."""
SPLITS = {"scenes": scene_splits, "walks": walk_splits}


def candidates(n_sections):
    """Return the models of a table and the candidates of each, by name."""
    parts = (n_sections, n_sections)
    lda = {n: LDA(n) if n_sections == 1 else Tessellated(LDA(n), parts) for n in (2, 5, 10)}
    return {
        "LDA": {f"LDA {n}": model for n, model in lda.items()},
        "counting grid": {
            f"counting {n}/{w}": cg.CountingGrid((n, n), w, n_sections, anneal=ANNEAL) for n, w in SIZES[n_sections]
        },
        "componential grid": {
            f"componential {n}/{w}": cg.ComponentialGrid((n, n), w, n_sections) for n, w in SIZES[n_sections]
        },
    }


def compared(options, name):
    """Return a row for every model and number of sections: accuracy, and the gain over the counting grid."""
    rows, splits = [], SPLITS[name](options)
    for n_sections in SECTIONS:
        found = {
            row: [
                evaluated(options, f"{name} {seed} {n_sections}", n_sections, models, X, y, folds[:1], *test)
                for seed, (X, y, folds, *test) in enumerate(splits)
            ]
            for row, models in candidates(n_sections).items()
        }
        reference = [accuracy for accuracy, _ in found["counting grid"]]
        for row, results in found.items():
            accuracy, chosen = zip(*results, strict=True)
            gain = percent(np.subtract(accuracy, reference))
            rows.append([f"{n_sections}x{n_sections}", row, percent(accuracy), gain, "; ".join(chosen)])
            print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("COUNTINGGRIDS_DATA", "data")))
    parser.add_argument("--parts", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("admixtures"))
    parser.add_argument("--minutes", type=float, default=np.inf)
    options = parser.parse_args()
    options.steps = Steps(options.work, options.minutes)
    for name in options.parts:
        head = ["sections", "model", "accuracy, %", "over the counting grid", "chosen"]
        table(name, head, compared(options, name))


if __name__ == "__main__":
    main()
