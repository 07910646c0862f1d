"""Compare default fits with those of another source tree, in turns, each in a separate process.

    COUNTINGGRIDS_DATA=... python benchmarks/against.py path/to/other/src [case ...] [--repeats 3] [--json against.json]

CPU seconds are of the whole process, with imports. Held-out bags are those of `heldout.py`, of `peers.py` (document
completion) and of a tenth of the AP stories. Lower is better, except for scores in percent.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CASES = ("dense2000", "texts5000", "news", "ap")
TRIAL = """
import json, os, sys, time
sys.path.insert(0, sys.argv[2])
import numpy as np, scipy.sparse as sp
import countinggrids as cg

case = sys.argv[1]

def completion(model, shown, hidden):
    pi = np.moveaxis(model.pi_, -1, 0)
    h = pi.reshape(len(pi), -1) if model_window == 1 else sums(pi).reshape(len(pi), -1)
    q, total = model.transform(shown), 0.0
    for start in range(0, len(q), 250):
        p = np.asarray(q[start : start + 250] @ h.T)
        some = hidden[start : start + 250].tocoo()
        total += some.data @ np.log(np.maximum(p[some.row, some.col], 1e-12))
    return float(np.exp(-total / hidden.data.sum()))

def sums(pi):
    out = np.zeros_like(pi)
    for row in range(model_window):
        for column in range(model_window):
            out += np.roll(pi, (-row, -column), (1, 2))
    return out / model_window**2

def halves(X):
    shown = X.copy()
    shown.data = np.random.default_rng(0).binomial(X.data.astype(int), 0.5).astype(np.float32)
    hidden = (X - shown).tocsr()
    for each in (shown, hidden):
        each.eliminate_zeros()
    return shown, hidden

stored = np.load(sys.argv[3], allow_pickle=False)
def matrix(name):
    parts = tuple(stored[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=stored[f"{name}_shape"])
grid, model_window = tuple(int(n) for n in stored["grid"]), int(stored["window"])
train = matrix("train") if "train_data" in stored else stored["train"]
began = time.process_time()
model = cg.CountingGrid(grid, model_window, random_state=0).fit(train)
import resource
fitted = {"fit": time.process_time() - began, "process": time.process_time(), "iterations": int(model.n_iter_),
          "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
if "h" in stored:
    test, h = matrix("test") if "test_data" in stored else stored["test"], stored["h"]
    totals = np.asarray(train.sum(axis=0)).ravel() + 0.01
    unigram = float((test @ np.log(totals / totals.sum())).sum())
    joint = test @ np.log(np.maximum(h.T, 1e-300))
    best = joint.max(axis=1, keepdims=True)
    truth = float((best[:, 0] + np.log(np.exp(joint - best).mean(axis=1))).sum())
    fitted["held out"] = float((model.score_samples(test).sum() - unigram) / (truth - unigram))
else:
    fitted["held out"] = completion(model, *halves(matrix("test")))
print(json.dumps(fitted))
"""


def bags(case):
    """Return training bags, test bags, true windows or None, grid and window of a case."""
    from common import dense_bags, text_bags

    if case == "dense2000":
        X, h = dense_bags(0)
        return X[:2000], X[2000:], h, (32, 32), 8
    if case == "texts5000":
        X, h = text_bags(0)
        return X[:5000], X[5000:], h, (32, 32), 5
    if case == "news":
        from corpora import newsgroups

        news = newsgroups()
        return news.train, news.test, None, (64, 64), 8
    X = stories()
    return X[: len_of(X)], X[len_of(X) :], None, (55, 55), 8


def len_of(X):
    """Return the number of training stories: nine tenths."""
    return X.shape[0] * 9 // 10


def stories():
    """Return the AP stories as counts of all words that occur at least twice, in random order."""
    import re

    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    text = (Path(os.environ["COUNTINGGRIDS_DATA"]) / "text" / "ap.txt").read_text(errors="replace")
    texts = re.findall(r"<TEXT>(.*?)</TEXT>", text, re.DOTALL)
    X = CountVectorizer(min_df=2, stop_words="english", dtype=np.float32).fit_transform(texts)
    return X[np.random.default_rng(0).permutation(X.shape[0])].tocsr()


def stored(case, folder):
    """Write the bags of a case to a file that both versions read."""
    import numpy as np
    import scipy.sparse as sp

    train, test, h, grid, window = bags(case)
    parts = {"grid": np.array(grid), "window": np.array(window)} | ({} if h is None else {"h": h})
    for name, X in (("train", train), ("test", test)):
        if sp.issparse(X):
            parts |= {f"{name}_{part}": np.asarray(getattr(X, part)) for part in ("data", "indices", "indptr", "shape")}
        else:
            parts[name] = X
    path = Path(folder) / f"{case}.npz"
    np.savez(path, **parts)
    return path


def measured(case, source, path):
    """Fit in a new process with one version; return what it printed."""
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", TRIAL, case, str(source), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def compared(case, other, repeats, folder):
    """Fit with both versions in turns; return the median figures of each."""
    import numpy as np

    path, found = stored(case, folder), {"other": [], "this": []}
    for _ in range(repeats):
        for name, source in (("other", other), ("this", HERE.parent / "src")):
            found[name].append(measured(case, source, path))
            print(f"  {case}, {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    keys = found["this"][0]
    return {name: {key: float(np.median([run[key] for run in runs])) for key in keys} for name, runs in found.items()}


def main():
    import tempfile

    from common import table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="folder src of the other version")
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], metavar="case", help=f"of {', '.join(CASES)}")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    has_data = "COUNTINGGRIDS_DATA" in os.environ
    cases = options.cases or [case for case in CASES if has_data or case not in ("news", "ap")]
    with tempfile.TemporaryDirectory() as folder:
        found = {case: compared(case, options.other.resolve(), options.repeats, folder) for case in cases}
    rows = []
    for case, both in found.items():
        other, this = both["other"], both["this"]
        rows.append([case, *(f"{each['process']:.1f} s" for each in (other, this)),
                     f"{this['process'] / other['process']:.2f}", f"{this['fit'] / other['fit']:.2f}",
                     *(f"{each['held out']:.4g}" for each in (other, this)),
                     *(f"{each['megabytes']:.0f}" for each in (other, this))])  # fmt: skip
    header = ["case", "CPU, other", "CPU, this", "ratio", "ratio of fit alone", "held out, other", "held out, this",
              "MB, other", "MB, this"]  # fmt: skip
    table("Default fits; held out: score in percent (higher is better) or perplexity (lower is better)", header, rows)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
