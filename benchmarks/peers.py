"""Held-out perplexity of topic models against training time: half of the words of test documents are predicted.

pip install tomotopy gensim
COUNTINGGRIDS_DATA=... python benchmarks/peers.py [--corpus news] [--seconds 64] [--seeds 1] [--results peers.json]

Every model is measured from its first usable state on; the time of measurements is not counted. Training ends when
the model no longer improves, or after `--seconds` (2.5 times as long for models with many topics). Runs are written to
the file of results as they end, and the same command resumes after an interruption.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import countinggrids as cg
from common import table, windows
from corpora import CORPORA
from countinggrids.training import admixing

MARKS = (2, 4, 8, 16, 32, 64)
LOOKS = (0.6, 1, 1.7, 2.6, 3.6, 5.5, 7.5, 11, 15, 22, 31, 45, 62, 90, 125, 180, 250, 350)
"""Seconds of training after which a state is measured, as soon as there is one."""
SLOW = 2.5
"""Factor on the training time of models with many topics, which are the best in the end."""
PATIENCE, GAIN = 4, 0.001
"""Measurements without improvement over the best one after which training ends."""
N_WORKERS = 2


class TimeOverError(Exception):
    """Raised when the training time of a model is over, or when it no longer improves."""


class Clock:
    """Training time; decides when a state is measured."""

    def __init__(self, name, longest):
        self.name, self.longest = name, longest
        self.points, self.spent, self.due = [], 0.0, LOOKS[0]
        self.began = time.perf_counter()

    def look(self, perplexity, is_last=False):
        """Measure a state if it is time; raise when training should end."""
        now = self.spent + time.perf_counter() - self.began
        if now < self.due and not is_last:
            return
        self.spent, self.due = now, next((when for when in LOOKS if when > now), np.inf)
        self.points.append((round(now, 3), perplexity()))
        print(f"  {self.name}: {now:.1f} s, perplexity {self.points[-1][1]:.0f}", flush=True)
        seen = [value for _, value in self.points]
        has_settled = len(seen) > PATIENCE and min(seen[-PATIENCE:]) > (1 - GAIN) * min(seen[:-PATIENCE])
        if not is_last and (now > self.longest or has_settled):
            raise TimeOverError
        self.began = time.perf_counter()


def componential(corpus, clock, seed):
    model = cg.ComponentialGrid(random_state=seed)
    stages = {stage.grid: stage for stage in admixing.stages_of(model._geometry())}

    def measured(grid, geometry):
        state = cg.ComponentialGrid(geometry.grid, geometry.window)
        state._keep(grid, geometry)
        state.n_features_in_ = len(grid.pi)
        return corpus.perplexity(state.transform(corpus.shown), windows(state.pi_, geometry.window[0]))

    def look(iteration):
        grid = iteration._fetched
        clock.look(lambda: measured(grid, stages[grid.log_prior.shape]))

    model.fit(corpus.train, callback=look)
    clock.look(lambda: measured(model.planes(), model.geometry_), is_last=True)


def counting_grid(corpus, clock, seed):
    window = 8

    def look(iteration):
        state = cg.CountingGrid(iteration.log_prior.shape, window if iteration.stage == "learning" else 2)
        state._keep(iteration._fetched, state._geometry())
        state.n_features_in_ = corpus.train.shape[1]
        width = state.geometry_.window[0]
        clock.look(lambda: corpus.perplexity(state.transform(corpus.shown), windows(state.pi_, width)))

    cg.CountingGrid((64, 64), window, random_state=seed).fit(corpus.train, callback=look)


def tomotopy(kind, **settings):
    def run(corpus, clock, seed):
        import tomotopy

        model = getattr(tomotopy, kind)(seed=seed, **settings)
        for words in tokens(corpus.train):
            model.add_doc(words)

        def measured():
            topics = np.zeros((model.k, corpus.train.shape[1]))
            columns = [int(name) for name in model.used_vocabs]
            for topic in range(model.k):
                topics[topic, columns] = model.get_topic_word_dist(topic)
            weights, _ = model.infer([model.make_doc(words) for words in tokens(corpus.shown)], workers=N_WORKERS)
            return corpus.perplexity(np.array(weights), topics)

        while True:
            model.train(10, workers=N_WORKERS)
            clock.look(measured)

    return run


def scikit_learn(n_topics, method):
    def run(corpus, clock, seed):
        from sklearn.decomposition import LatentDirichletAllocation
        from sklearn.utils.parallel import Parallel

        X, rng = corpus.train, np.random.default_rng(seed)
        size = 512 if method == "online" else X.shape[0]
        how = {"learning_method": method, "n_jobs": N_WORKERS, "random_state": seed}
        model = LatentDirichletAllocation(n_topics, total_samples=X.shape[0], batch_size=size, max_iter=1, **how)

        def measured():
            topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
            return corpus.perplexity(model.transform(corpus.shown), topics)

        def batch_pass():
            # What `fit` does in an iteration: an E and an M step over all documents.
            if not hasattr(model, "components_"):
                model._init_latent_vars(X.shape[1], dtype=X.dtype)
            with Parallel(n_jobs=N_WORKERS) as parallel:
                model._em_step(X, total_samples=X.shape[0], batch_update=True, parallel=parallel)

        while True:
            if method == "batch":
                batch_pass()
                clock.look(measured)
                continue
            order = rng.permutation(X.shape[0])
            for start in range(0, len(order), size):
                model.partial_fit(X[order[start : start + size]])
                clock.look(measured)

    return run


def gensim(n_topics):
    def run(corpus, clock, seed):
        from gensim.matutils import Sparse2Corpus
        from gensim.models import LdaModel

        names = {number: str(number) for number in range(corpus.train.shape[1])}
        shown = list(Sparse2Corpus(corpus.shown.astype(int), documents_columns=False))
        model = LdaModel(id2word=names, num_topics=n_topics, alpha="auto", random_state=seed)

        def measured():
            weights = model.inference(shown)[0]
            return corpus.perplexity(weights / weights.sum(axis=1, keepdims=True), model.get_topics())

        while True:
            for start in range(0, corpus.train.shape[0], 2000):
                part = corpus.train[start : start + 2000].astype(int)
                model.update(Sparse2Corpus(part, documents_columns=False))
                clock.look(measured)

    return run


def tokens(counts):
    """List the words of every document by their numbers; one without words has the first."""
    for row in range(counts.shape[0]):
        part = slice(counts.indptr[row], counts.indptr[row + 1])
        words = np.repeat(counts.indices[part], counts.data[part].astype(int))
        yield [str(word) for word in words] or ["0"]


OURS = {"componential grid": componential}
PEERS = {
    **{f"tomotopy LDA, {k} topics": tomotopy("LDAModel", k=k) for k in (200, 128, 64, 32)},
    "tomotopy HDP": tomotopy("HDPModel", initial_k=64),
    "tomotopy correlated topics, 64 topics": tomotopy("CTModel", k=64),
    "tomotopy pseudo-documents, 64 topics": tomotopy("PTModel", k=64, p=1000),
    "scikit-learn LDA, online, 64 topics": scikit_learn(64, "online"),
    "scikit-learn LDA, batch, 64 topics": scikit_learn(64, "batch"),
    "gensim LDA, 64 topics": gensim(64),
}
OTHERS = {"counting grid 64x64/8x8": counting_grid}
LONGER = ("tomotopy LDA, 200 topics", "tomotopy LDA, 128 topics")


def measured_run(name, run, corpus, seed, longest):
    """Run a model; return what was measured, or None if its library is not installed."""
    clock = Clock(name, longest)
    try:
        run(corpus, clock, seed)
    except TimeOverError:
        pass
    except ImportError as error:
        print(f"  {name} is left out: {error}")
        return None
    return clock.points


def at(points, seconds):
    """Return the last perplexity that was measured until a time, or infinity."""
    return next((value for when, value in reversed(points) if when <= seconds), np.inf)


def report(results):
    """Print the perplexities of all models at some times, means over seeds."""
    rows, finals = [], {}
    for name, seeds in results.items():
        runs = [points for points in seeds.values() if points]
        if not runs:
            continue
        finals[name] = float(np.mean([min(value for _, value in points) for points in runs]))
        means = [np.mean([at(points, mark) for points in runs]) for mark in MARKS]
        ends = [points[-1] for points in runs]
        spread = f" ± {np.std([value for _, value in ends]):.0f}" if len(runs) > 1 else ""
        last = f"{np.mean([value for _, value in ends]):.0f}{spread}"
        rows.append([name, len(runs), *(f"{mean:.0f}" if np.isfinite(mean) else "-" for mean in means), last,
                     f"{np.mean([when for when, _ in ends]):.0f} s", f"{finals[name]:.0f}"])  # fmt: skip
    heads = ["model", "seeds", *(f"{mark} s" for mark in MARKS), "end", "after", "best"]
    table("Held-out perplexity (lower is better)", heads, rows)
    peers = {name: value for name, value in finals.items() if name in PEERS}
    if peers and "componential grid" in finals:
        best = min(peers, key=peers.get)
        ends = [points[-1][1] for points in results["componential grid"].values() if points]
        ratio = float(np.mean(ends)) / peers[best]
        print(f"\nthe componential grid ends at {ratio:.3f} of the best perplexity of {best}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=CORPORA, default="news")
    parser.add_argument("--seconds", type=float, default=64, help="of training, at most, for each model")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of models, or parts of them")
    parser.add_argument("--results", type=Path, default=Path("peers.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = json.loads(options.results.read_text()) if options.results.exists() else {}
    results = stored.setdefault(options.corpus, {})
    corpus = CORPORA[options.corpus]()
    print(f"{corpus.name}: {corpus.train.shape[0]} documents, {corpus.train.shape[1]} words")
    for seed in range(options.seeds):
        for name, run in (OURS | PEERS | OTHERS).items():
            done = results.setdefault(name, {})
            is_wanted = options.only is None or any(part in name for part in options.only)
            if is_wanted and str(seed) not in done:
                longest = options.seconds * (SLOW if name in LONGER else 1)
                done[str(seed)] = measured_run(name, run, corpus, seed, longest)
                options.results.write_text(json.dumps(stored, indent=1))
    report(results)


if __name__ == "__main__":
    main()
