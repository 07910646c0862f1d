"""Mutated files of every kind, given to every reader; run in a process of its own."""

import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from typer.testing import CliRunner

import countinggrids as cg
import mutations
from countinggrids.cli import app
from countinggrids.data import collection_file, container, estimator_file, readers
from countinggrids.data.items import Items
from countinggrids.features import Codebook, DenseSIFT, Textons
from countinggrids.features.text import Document
from countinggrids.models import storage
from countinggrids.training import checkpoints
from estimators import ESTIMATORS, answers

X = np.random.default_rng(0).poisson(0.7, (24, 12))
PHOTOS = np.random.default_rng(1).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
OPTIONS = {"max_iter": 12, "tol": 1e-2, "random_state": 3}
EXPECTED = (ValueError, OSError)
ESTIMATOR_KINDS = ("classifier", "search", "tracker", "neighbors", "scores, compared", "clusters")
SLOW_EVERY = 20
"""One file in so many is given to the slow readers too."""


class Killed(Exception):  # noqa: N818
    pass


def command(*arguments):
    """Run a command; raise unless it ends well, or with a line on what is wrong."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    lines = result.stderr.strip().splitlines()
    if result.exit_code and (result.exit_code != 2 or not lines or not lines[-1].startswith("Error: ")):
        raise AssertionError(f"{arguments} ended with {result.exit_code}: {result.stderr!r}")
    if result.exit_code:
        raise ValueError(lines[-1])


class Kind:
    """A kind of file: how it is made, how it is damaged and what reads it."""

    suffix = ".cg"
    damages = (mutations.mutated,)

    def __init__(self, folder):
        self.path = folder / f"whole{self.suffix}"
        self.make(self.path)
        self.content = self.path.read_bytes()
        self.model = folder / "known.model"
        cg.CountingGrid((4, 4), 2, max_iter=20, tol=9.0, random_state=0).fit(self.counts()).save(self.model)

    def counts(self):
        return X

    def damaged(self, path, rng):
        path.write_bytes(mutations.pick(self.damages, rng)(self.content, rng))

    def readers(self, path):
        """Return functions that read a file."""
        raise NotImplementedError

    def slow_readers(self, path):
        """Return functions that read a file and take so long that few files are given to them."""
        return ()


class Counts(Kind):
    """Counts alone."""

    def readers(self, path):
        model = cg.CountingGrid((4, 4), 2)
        yield lambda: readers.read(model, path, is_fitting=True).take(np.arange(2))
        yield lambda: command("info", path)
        yield lambda: command("locate", self.model, path)


class Npy(Counts):
    suffix = ".npy"
    damages = (mutations.mutated, mutations.with_other_header, mutations.with_other_header)

    def make(self, path):
        np.save(path, X)


class Npz(Counts):
    suffix = ".npz"
    damages = (mutations.mutated, mutations.other_archive, mutations.other_archive)
    layout = "csr"

    def make(self, path):
        sp.save_npz(path, sp.csr_array(X).asformat(self.layout))


class Container(Kind):
    """A file of ours. Most mutated ones have correct digests, so that what is checked behind these is exercised."""

    form, version = "", 1
    damages = (mutations.mutated, mutations.resigned_anywhere, mutations.resigned_bytes, mutations.resigned_header)

    def __init__(self, folder):
        super().__init__(folder)
        facts, arrays = container.read(self.path, self.form, self.version)
        self.facts, self.arrays = facts, {name: np.array(arrays[name]) for name in arrays}

    def damaged(self, path, rng):
        kind = rng.integers(6)
        if kind < 3:
            super().damaged(path, rng)
        elif kind == 3:
            container.write(path, self.facts, mutations.other_arrays(self.arrays, rng))
        else:
            container.write(path, mutations.other_facts(self.facts, rng), self.arrays)


class Model(Container):
    form, version = storage.FORMAT, storage.VERSION

    def make(self, path):
        cg.CountingGrid((4, 4), 2, eta=np.full(12, 0.1), anneal=(0.5, 1.5, 1.0), random_state=0).partial_fit(X).save(
            path
        )

    def readers(self, path):
        yield lambda: cg.load(path).transform(X)
        yield lambda: cg.load(path).sample(2, 5, random_state=0)
        yield lambda: cg.load(path).partial_fit(X)
        yield lambda: command("info", path)
        yield lambda: command("info", path, "--json")


class Texts(Container):
    form, version = collection_file.FORMAT, collection_file.VERSION

    def make(self, path):
        documents = [
            Document(" ".join(np.repeat([f"w{i}" for i in range(12)], row)), f"t{n}", time=n) for n, row in enumerate(X)
        ]
        cg.Collection.from_texts(documents).save(path)

    def readers(self, path):
        yield lambda: readers.read(cg.CountingGrid((4, 4), 2), path, is_fitting=True).take(np.arange(2))
        yield lambda: self.walk(cg.Collection.load(path))
        yield lambda: command("info", path)
        yield lambda: command("locate", self.model, path)

    def slow_readers(self, path):
        yield lambda: command("export", self.model, path, "-o", path.with_name("map.html"), "--force")
        yield lambda: command("cluster", path, "-o", path.with_name("table.csv"), "--force", "--model", self.model)
        yield lambda: command("plot", self.model, path, "-o", path.with_name("plot.png"), "--force")

    def walk(self, collection):
        collection.take([0, 1]).coarsen(collection.sections).counts.sum()
        collection.items.run_lengths()
        collection.vocabulary.take([0])
        collection.bag(["w1 w2 w1"])


class Photos(Texts):
    """Images with a codebook."""

    def steps(self):
        return [DenseSIFT(patch=16, step=8), Codebook(5, random_state=0)]

    def make(self, path):
        steps, images = self.steps(), list(PHOTOS)
        for number, step in enumerate(steps):
            made = images
            for before in steps[:number]:
                made = before.transform(made)
            step.fit(made)
        items = Items({"path": [f"{n}.jpg" for n in range(4)], "label": list("abab")}, "photos")
        cg.Collection.from_images(items, steps, (2, 2), images).save(path)

    def counts(self):
        return cg.Collection.load(self.path).coarsen((1, 1)).counts

    def walk(self, collection):
        collection.split("label" if "label" in collection.items else "path")
        collection.coarsen(1) if len(collection.sections) == 1 else collection.coarsen((1, 1))
        collection.bag([PHOTOS[0]])
        assert len(collection.steps[-1].vocabulary_) < 10**6
        assert collection.fingerprint


class PhotosOfTextons(Photos):
    def steps(self):
        return [Textons(5, patch=4, step=8, random_state=0)]


class Checkpoint(Container):
    form, version = checkpoints.FORMAT, checkpoints.VERSION

    def fit(self, path, dies_at=None):
        seen = []

        def callback(now):
            seen.append(now.stage)
            if seen.count("learning") == dies_at:
                raise Killed

        cg.CountingGrid((8, 8), (4, 4), **OPTIONS).fit(X, callback=callback, checkpoint=path)

    def make(self, path):
        checkpoints.TIME_FRACTION = 1.0
        try:
            self.fit(path, dies_at=2)
        except Killed:
            return
        raise AssertionError("the fit ended before it was killed")

    def readers(self, path):
        yield lambda: self.fit(path)


class Estimator(Container):
    """An estimator that is no model: with models inside it, and with attributes of every kind."""

    form, version = estimator_file.FORMAT, estimator_file.VERSION
    name = ""

    def make(self, path):
        estimator, X, y = ESTIMATORS[self.name]
        estimator.fit(X, y).save(path)

    def readers(self, path):
        _, X, y = ESTIMATORS[self.name]
        yield lambda: answers(cg.load(path), X, y)
        yield lambda: command("info", path, "--json")


KINDS = {
    "npy": Npy,
    "model": Model,
    "texts": Texts,
    "codebook": Photos,
    "textons": PhotosOfTextons,
    "checkpoint": Checkpoint,
}
KINDS |= {name: type("Fuzzed", (Estimator,), {"name": name}) for name in ESTIMATOR_KINDS}
KINDS |= {
    f"npz {layout}": type(f"Npz{layout}", (Npz,), {"layout": layout}) for layout in ("csr", "csc", "bsr", "coo", "dia")
}


def is_signed(path):
    """Return whether a file of ours matches its digests."""
    try:
        return container.verify(path) > 0
    except ValueError:
        return False


def fuzz(name, folder, seeds):
    """Mutate a file once for each seed and read it; return what happened."""
    folder = folder / name
    folder.mkdir()
    kind = KINDS[name](folder)
    report = {"kind": name, "files": 0, "signed": 0, "read": 0, "refused": 0, "slowest": 0.0, "faults": []}
    for reader in (*kind.readers(kind.path), *kind.slow_readers(kind.path)):
        reader()
    kind.path.write_bytes(kind.content)
    for seed in seeds:
        path = folder / f"damaged{kind.suffix}"
        kind.damaged(path, np.random.default_rng([seed, *name.encode()]))
        content = path.read_bytes()
        report["files"] += 1
        report["signed"] += is_signed(path)
        print(json.dumps({"kind": name, "seed": seed}), flush=True)
        slow = kind.slow_readers(path) if seed % SLOW_EVERY == 0 else ()
        for number, reader in enumerate((*kind.readers(path), *slow)):
            began = time.monotonic()
            try:
                reader()
                report["read"] += 1
            except EXPECTED as error:
                report["refused"] += 1
                if not str(error):
                    report["faults"].append([seed, number, "says nothing"])
            except BaseException:
                report["faults"].append([seed, number, traceback.format_exc()[-1500:]])
            report["slowest"] = max(report["slowest"], time.monotonic() - began)
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)
    report["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return report


if __name__ == "__main__":
    where, first, last, *kinds = sys.argv[1:]
    os.environ.pop("COUNTINGGRIDS_MAX_BYTES", None)
    for each in kinds:
        print(json.dumps(fuzz(each, Path(where), range(int(first), int(last)))), flush=True)
