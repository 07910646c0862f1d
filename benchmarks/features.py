"""Image features: how fast they are, and what a spatial pyramid makes of them on 15-Scenes.

The accuracy needs the data set: COUNTINGGRIDS_DATA is the folder that holds 15scenes.tar.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import common
import countinggrids as cg
from countinggrids import datasets
from countinggrids.features import Codebook, DenseSIFT, Stream, pictures

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
    pixels = pictures.read(path)
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
    rows = [[name, f"{N_IMAGES / seconds:.0f} a second"] for name, seconds in times.items()]
    common.table("Images of 256x256 (bar: 150 a second, no slower than OpenCV)", ["what", "speed"], rows)
    print(f"  ratio of times: {ours / theirs:.2f}")


def pyramid(labels, n_words):
    """Give the weighted histograms of a spatial pyramid of three levels."""
    X = cg.bag([labels], (4, 4), n_words)
    cells = X.toarray().reshape(4, 4, n_words) / labels.size
    halves = cells.reshape(2, 2, 2, 2, n_words).sum(axis=(1, 3))
    return np.concatenate([cells.ravel() / 2, halves.ravel() / 4, cells.sum(axis=(0, 1)) / 4]).astype(np.float32)


def intersections(A, B):
    """Give the histogram intersection of every row of A with every row of B."""
    return np.stack([np.minimum(row, B).sum(axis=1) for row in A])


def accuracy(folder, seed):
    items = datasets.scenes15(folder)
    paths = [items.path(i) for i in range(len(items))]
    is_train, classes = items["split"] == "train", items["label"].astype(str)
    sift, book = DenseSIFT(), Codebook(200, random_state=seed)
    book.fit(sift.transform([path for path, is_in in zip(paths, is_train, strict=True) if is_in]))
    maps = book.transform(sift.transform(paths))
    X = np.stack([pyramid(np.asarray(each), 200) for each in maps])
    svm = SVC(C=10, kernel="precomputed").fit(intersections(X[is_train], X[is_train]), classes[is_train])
    with threadpool_limits(1):
        is_right = svm.predict(intersections(X[~is_train], X[is_train])) == classes[~is_train]
    return is_right.mean(), np.mean([is_right[classes[~is_train] == name].mean() for name in set(classes)])


def bagging(folder):
    """Run the command on all images, in a process of its own; give seconds and megabytes."""
    command = [sys.executable, "-c", "from countinggrids.cli import app; app()", "bag", "images", str(folder)]
    output = Path(folder).parent / "scenes.cg"
    began = time.perf_counter()
    subprocess.run([*command, "--sections", "4x4", "--force", "-o", str(output)], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


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
        seconds, megabytes = bagging(f"{folder}/small")
        rows = [["20,000 generated images", f"{seconds:.0f} s", f"{megabytes:.0f} MB"]]
    with common.unpacked("15scenes.tar") as folder:
        if folder is not None:
            seconds, megabytes = bagging(folder / "15scenes")
            rows.append(["15-Scenes, 4485 images (bar: 60 s, 1 GB)", f"{seconds:.0f} s", f"{megabytes:.0f} MB"])
        common.table("countinggrids bag images --sections 4x4", ["images", "time", "largest of both so far"], rows)
        if folder is None:
            return
        shares = [accuracy(folder / "15scenes", seed) for seed in range(3)]
    common.table(
        "Spatial pyramid kernel on 15-Scenes, 200 words, standard split (bar: 79%)",
        ["codebook", "right", "mean over classes"],
        [[f"seed {i}", f"{100 * whole:.1f}%", f"{100 * mean:.1f}%"] for i, (whole, mean) in enumerate(shares)],
    )


if __name__ == "__main__":
    main()
