"""Image features: speed, memory, and accuracy of the spatial pyramid kernel on 15-Scenes.

The accuracy needs the data set: COUNTINGGRIDS_DATA is the folder that holds 15scenes.tar.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

import common
import countinggrids as cg
from countinggrids import datasets
from countinggrids.baselines import PyramidClassifier
from countinggrids.features import Codebook, DenseSIFT, Stream, image_files

N_IMAGES = 400


def photos(folder):
    """Write JPEGs of 256x256 pixels, cut from two photos."""
    rng = np.random.default_rng(0)
    sources = load_sample_images().images
    paths = [folder / f"{i}.jpg" for i in range(N_IMAGES)]
    for i, path in enumerate(paths):
        top, left = rng.integers(0, 427 - 256), rng.integers(0, 640 - 256)
        Image.fromarray(sources[i % 2][top : top + 256, left : left + 256]).save(path, quality=90)
    return paths


def opencv_sift(path):
    """Call OpenCV's SIFT at the points of the grid."""
    pixels = image_files.read(path)
    points = [cv2.KeyPoint(x + 8.0, y + 8.0, 16 / 6) for y in range(0, 241, 8) for x in range(0, 241, 8)]
    return cv2.SIFT_create().compute(pixels, points)[1]


def speed():
    with tempfile.TemporaryDirectory() as folder:
        paths = photos(Path(folder))
        cv2.setNumThreads(1)
        times = {}
        for name, stream in (
            ("DenseSIFT, decoding included", DenseSIFT(n_jobs=2).transform(paths)),
            ("OpenCV's SIFT at the same points, two threads", Stream(paths, opencv_sift, n_jobs=2)),
        ):
            times[name] = common.best_of(lambda stream=stream: [None for _ in stream], 3)
    ours, theirs = times.values()
    rows = [[name, f"{N_IMAGES / seconds:.0f} per second"] for name, seconds in times.items()]
    common.table("Images of 256x256 (target: 150 per second, no slower than OpenCV)", ["measure", "value"], rows)
    print(f"  ratio of times: {ours / theirs:.2f}")


def accuracy(folder, seed):
    items = datasets.scenes15(folder)
    paths = [items.path(i) for i in range(len(items))]
    is_train, classes = items["split"] == "train", items["label"].astype(str)
    sift, book = DenseSIFT(), Codebook(200, random_state=seed)
    book.fit(sift.transform([path for path, is_in in zip(paths, is_train, strict=True) if is_in]))
    X = cg.bag(book.transform(sift.transform(paths)), (4, 4), 200)
    is_correct = PyramidClassifier().fit(X[is_train], classes[is_train]).predict(X[~is_train]) == classes[~is_train]
    return is_correct.mean(), np.mean([is_correct[classes[~is_train] == name].mean() for name in set(classes)])


def bagging(*arguments):
    """Run the command `bag` in a separate process; return seconds and the peak in MB over all runs so far."""
    command = [sys.executable, "-c", "from countinggrids.cli import app; app()", "bag", *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run([*command, "-o", f"{folder}/bags.cg"], check=True, capture_output=True)
        seconds = time.perf_counter() - began
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def newsgroups(path):
    """Write 20 Newsgroups as raw texts, one JSON object per line, from its counts."""
    news = datasets.newsgroups(Path(os.environ["COUNTINGGRIDS_DATA"]) / "text")
    words, counts = np.array(news.vocabulary.names, dtype=object), news.counts
    with open(path, "w", encoding="utf-8") as file:
        for begin, end in pairwise(counts.indptr):
            some = np.repeat(words[counts.indices[begin:end]], counts.data[begin:end].astype(int))
            file.write(json.dumps({"text": " ".join(some)}) + "\n")


def small_images(folder, n):
    """Write many small PNGs."""
    Path(folder).mkdir()
    rng = np.random.default_rng(0)
    for i in range(n):
        Image.fromarray(rng.integers(255, size=(40, 48), dtype=np.uint8)).save(Path(folder) / f"{i}.png")


def main():
    speed()
    with tempfile.TemporaryDirectory() as folder:
        small_images(f"{folder}/small", 20_000)
        seconds, megabytes = bagging("images", f"{folder}/small", "--sections", "4x4")
        rows = [["20,000 generated images", f"{seconds:.0f} s", f"{megabytes:.0f} MB"]]
    with common.unpacked("15scenes.tar") as folder:
        if folder is not None:
            newsgroups(folder / "news.jsonl")
            everything = ("--min-df", 1, "--max-df", 1.0, "--stop-words", "none", "--keep", "numbers,urls,emails,html")
            seconds, megabytes = bagging("text", folder / "news.jsonl", *everything)
            rows.append(["20 Newsgroups, all words (target: 1 GB)", f"{seconds:.0f} s", f"{megabytes:.0f} MB"])
            seconds, megabytes = bagging("images", folder / "15scenes", "--sections", "4x4")
            rows.append(["15-Scenes, 4485 images (target: 60 s, 1 GB)", f"{seconds:.0f} s", f"{megabytes:.0f} MB"])
        common.table("countinggrids bag; images in sections 4x4", ["input", "time", "peak so far"], rows)
        if folder is None:
            return
        shares = [accuracy(folder / "15scenes", seed) for seed in range(3)]
    common.table(
        "Spatial pyramid kernel on 15-Scenes, 200 words, standard split (target: 79%)",
        ["codebook", "right", "mean over classes"],
        [[f"seed {i}", f"{100 * whole:.1f}%", f"{100 * mean:.1f}%"] for i, (whole, mean) in enumerate(shares)],
    )


if __name__ == "__main__":
    main()
