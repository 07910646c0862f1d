"""Held-out perplexity along a default fit: how far above its lowest value does it end?

    COUNTINGGRIDS_DATA=... python benchmarks/fitcurve.py [case ...] [--every 3] [--json curve.json] [--plot curve.png]

Perplexity of test bags at the inverse temperature 1, of grids along the fit and of the model that is kept: by
document completion for texts, by the likelihood of whole bags for the others.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np

import countinggrids as cg
from against import bags as bags_of
from common import as_fitted, table, windows
from corpora import Completion

CASES = ("dense2000", "texts5000", "ap", "news", "scenes")
BAR = 0.003


def scene_class(n_tokens=100):
    """Return bags of a class of 15-Scenes, 2x2 sections of 100 tokens in all, and test bags of that class."""
    import tarfile

    from countinggrids.features import Codebook, DenseSIFT

    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(Path(os.environ["COUNTINGGRIDS_DATA"]) / "15scenes.tar") as archive:
            archive.extractall(folder, filter="data")
        root = next(path for path in Path(folder).rglob("train"))
        name = sorted(path.name for path in root.iterdir())[0]
        maps = [
            DenseSIFT().fit_transform(sorted((root.parent / part / name).iterdir())[:100]) for part in ("train", "test")
        ]
        codebook = Codebook(200, random_state=0).fit(maps[0])
        tables = [cg.bag(codebook.transform(each), 2, 200).astype(np.float32) for each in maps]
    return [cg.BagScaler(n_tokens).fit_transform(each) for each in tables]


def case_of(name):
    """Return training bags, a function that computes the perplexity of a model, and the model."""
    if name == "scenes":
        train, test = scene_class()
        return train, lambda model: model.perplexity(test), cg.CountingGrid((12, 12), 8, 2, random_state=0)
    train, test, h, grid, window = bags_of(name)
    model = cg.CountingGrid(grid, window, random_state=0)
    if h is not None:
        return train, lambda fitted: fitted.perplexity(test), model
    held = Completion(test, np.random.default_rng(0))
    return train, lambda fitted: held.perplexity(fitted.transform(held.shown), windows(fitted.pi_, window)), model


def curve(name, every):
    """Fit, and return points [iteration, beta, perplexity] along the fit, and the perplexity of the model kept."""
    train, perplexity, model = case_of(name)
    points = []

    def look(now):
        if now.stage == "learning" and now.number % every == 1 % every:
            seen = as_fitted(now, model.window)
            seen.set_params(sections=model.sections, paint=model.paint)
            seen.geometry_, seen.n_features_in_ = model._geometry(), train.shape[1]
            points.append([now.number, now.beta, float(perplexity(seen))])
            print(f"  {name}: iteration {now.number}, beta {now.beta:.3f}, perplexity {points[-1][2]:.1f}", flush=True)

    model.fit(train, callback=look)
    return {"points": points, "kept": float(perplexity(model)), "iterations": int(model.n_iter_)}


def draw(found, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * len(found), 3), layout="constrained", dpi=120)
    for axes, (name, each) in zip(np.atleast_1d(figure.subplots(1, len(found))), found.items(), strict=True):
        numbers, _, values = zip(*each["points"], strict=True)
        axes.plot(numbers, values, marker=".")
        axes.axhline(each["kept"], color="k", lw=0.8, ls="--", label="model kept")
        axes.set(title=name, xlabel="EM iteration on the full grid", ylabel="held-out perplexity")
        axes.legend(frameon=False)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}")
    parser.add_argument("--every", type=int, default=3, help="iterations between two points")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    found = {name: curve(name, options.every) for name in options.cases or CASES}
    rows = []
    for name, each in found.items():
        lowest = min([each["kept"], *(point[2] for point in each["points"])])
        rows.append([name, each["iterations"], f"{lowest:.1f}", f"{each['kept']:.1f}",
                     f"{each['kept'] / lowest - 1:+.2%}"])  # fmt: skip
    header = ["bags", "iterations", "lowest perplexity", "of the model kept", "above the lowest"]
    table(f"Held-out perplexity along a fit (target: at most {BAR:.1%} above the lowest)", header, rows)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.plot:
        draw(found, options.plot)


if __name__ == "__main__":
    main()
