"""The demo: a photo is cut into windows, and a grid reconstructs their layout from histograms.

The photo ships with scikit-learn. Each window is given as four histograms of unrelated colors, and nothing else.
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.alignment import Alignment, align
from countinggrids.data import container
from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.explore import ItemMap, export
from countinggrids.explore.pictures import encoded
from countinggrids.features import npy_files
from countinggrids.features.bagger import bag
from countinggrids.features.vocabulary import Vocabulary
from countinggrids.models import CountingGrid
from countinggrids.training.callbacks import Callback, combined

SCENE, WINDOW, N_WINDOWS, N_COLORS = (30, 45), (16, 16), 50, 64
GRID, SECTIONS = (38, 53), (2, 2)
TREES, TREES_GRID = (33, 40), (40, 48)
SHARP = 0.001
"""Pseudocounts after the layout is fitted, for sharper colors."""
N_SHOWN = 6
"""Windows that are outlined in a film."""


class Scene(NamedTuple):
    """A photo, downsampled and quantized to few colors.

    Attributes
    ----------
    photo : ndarray of shape (height, width, 3)
        Pixels, from 0 to 1.
    labels : ndarray of shape (n_rows, n_columns)
        Color of each downsampled pixel.
    palette : ndarray of shape (n_colors, 3)
        Colors, from 0 to 1.
    grid : tuple of int
        Rows and columns of a torus that is larger than the scene.
    """

    photo: NDArray[np.float64]
    labels: NDArray[np.int64]
    palette: NDArray[np.float64]
    grid: tuple[int, int]

    @property
    def vocabulary(self) -> Vocabulary:
        """The colors as features."""
        return Vocabulary.of_colors((255 * self.palette).clip(0, 255).round().astype(np.uint8))


def photo_scene(random_state: int = 0, name: str = "china.jpg") -> Scene:
    """Return the scene of one of scikit-learn's photos."""
    from sklearn.datasets import load_sample_image

    return scene_of(load_sample_image(name) / 255.0, random_state)


def scene_of(photo: NDArray[np.float64], random_state: int = 0) -> Scene:
    """Downsample a photo, (height, width, 3), from 0 to 1, and quantize its colors."""
    from sklearn.cluster import KMeans

    rows, columns = (np.linspace(0, n, parts + 1).astype(int) for n, parts in zip(photo.shape, SCENE, strict=False))
    sums = np.add.reduceat(np.add.reduceat(photo, rows[:-1], axis=0), columns[:-1], axis=1)
    small = sums / np.multiply.outer(np.diff(rows), np.diff(columns))[:, :, None]
    colors = KMeans(N_COLORS, n_init=1, random_state=random_state).fit(small.reshape(-1, 3))
    return Scene(photo, colors.labels_.reshape(SCENE).astype(np.int64), colors.cluster_centers_, GRID)


def tree_scene(folder: Path) -> Scene:
    """Return the scene of the drawing of the paper, trees/trees.npz in the folder of the data sets."""
    from sklearn.cluster import KMeans

    file = folder / "trees" / "trees.npz"
    if not file.is_file():
        raise ValueError(f"{file} does not exist; use the folder of the data sets.")
    data = npy_files.read_archive(file, ("X", "map"))
    rows, columns = (
        np.linspace(0, n - 1, small).round().astype(int) for n, small in zip(data["X"].shape, TREES, strict=True)
    )
    pixels = data["map"][data["X"][np.ix_(rows, columns)]]
    colors = KMeans(N_COLORS, n_init=1, random_state=0).fit(pixels.reshape(-1, 3))
    return Scene(data["map"][data["X"]], colors.labels_.reshape(TREES), colors.cluster_centers_, TREES_GRID)


def cut(scene: Scene, seed: int) -> tuple[NDArray[np.int64], Any]:
    """Draw windows of a scene at random; return their corners and their bags."""
    rng = np.random.default_rng(seed)
    sizes = zip(scene.labels.shape, WINDOW, strict=True)
    corners = np.stack([rng.integers(0, n - w + 1, N_WINDOWS) for n, w in sizes], axis=1)
    maps = [scene.labels[r : r + WINDOW[0], c : c + WINDOW[1]] for r, c in corners]
    return corners, bag(maps, SECTIONS, N_COLORS)


def film(scene: Scene, seed: int = 0, every: int | None = None, callback: Callback | None = None) -> tuple[Any, Any]:
    """Record a film of a fit to the windows of a scene.

    Parameters
    ----------
    scene : Scene
        The scene.
    seed : int, default=0
        Seed of windows and grid.
    every : int, default=None
        Number of iterations between frames.
    callback : callable, default=None
        Called after every iteration.

    Returns
    -------
    film : Film
        The recorded film.
    beside : ndarray of shape (height, width, 3)
        The scene with some of its windows, to be shown beside the film.
    """
    from countinggrids.plot import Film, watchable

    corners, X = cut(scene, seed)
    layout = watchable(CountingGrid(scene.grid, WINDOW, SECTIONS, random_state=seed), X)
    recorded = Film(layout, scene.vocabulary, X[:N_SHOWN], every=every)

    record = combined(recorded, callback)
    layout.fit(X, callback=record)
    CountingGrid(scene.grid, WINDOW, SECTIONS, eta=SHARP, anneal=None, init=layout.pi_).fit(X, callback=record)
    return recorded, _with_windows(scene, corners[:N_SHOWN])


def _with_windows(scene: Scene, corners: NDArray[np.int64], pitch: int = 12) -> NDArray[np.uint8]:
    """Draw a scene with windows, at the scale of its grid."""
    from PIL import Image, ImageDraw

    from countinggrids.plot.stage import COLORS, PAPER

    (rows, columns), room = scene.labels.shape, (scene.grid[0] - scene.labels.shape[0]) // 2
    photo = Image.fromarray((255 * scene.photo).clip(0, 255).round().astype(np.uint8))
    whole = Image.new("RGB", (columns * pitch, scene.grid[0] * pitch), PAPER)
    whole.paste(photo.resize((columns * pitch, rows * pitch)), (0, room * pitch))
    pen = ImageDraw.Draw(whole)
    for (row, column), color in zip(corners.tolist(), COLORS, strict=True):
        left, top = column * pitch, (row + room) * pitch
        pen.rectangle((left, top, left + WINDOW[1] * pitch - 1, top + WINDOW[0] * pitch - 1), outline=color, width=3)
    return np.asarray(whole)


def run(folder: Path, seed: int = 0, callback: Callback | None = None) -> dict[str, Any]:
    """Run the demo: write picture, model, collection and map into a folder.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    seed : int, default=0
        Seed of windows and grid.
    callback : callable, default=None
        Called after every iteration.

    Returns
    -------
    facts : dict
        Number of windows, of those put back and of iterations, seconds, and paths of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    scene = photo_scene()
    corners, X = cut(scene, seed)
    layout = CountingGrid(GRID, WINDOW, SECTIONS, random_state=seed).fit(X, callback=callback)
    model = CountingGrid(GRID, WINDOW, SECTIONS, eta=SHARP, anneal=None, init=layout.pi_).fit(X, callback=callback)
    alignment = align(model.locate(X), corners, GRID)
    picture, file = folder / "demo.png", folder / "demo.safetensors"
    model.save(file)
    draw(picture, scene, corners, model, alignment)
    collection = as_collection(folder, scene, corners, X, alignment)
    collection.save(folder / "demo.cg")
    page = folder / "map.html"
    export(ItemMap(model, collection, f"{N_WINDOWS} windows of a photo"), page)
    return {
        "windows": N_WINDOWS,
        "put_back": int(alignment.is_correct.sum()),
        "iterations": layout.n_iter_ + model.n_iter_,
        "seconds": round(time.perf_counter() - began, 1),
        "picture": str(picture),
        "model": str(file),
        "collection": str(folder / "demo.cg"),
        "page": str(page),
    }


def as_collection(folder: Path, scene: Scene, corners: Any, X: Any, alignment: Alignment) -> Collection:
    """Write a picture of each window, and return their collection; labels say which are back in place."""
    (folder / "windows").mkdir(exist_ok=True)
    scale = np.array(scene.photo.shape[:2]) / SCENE
    names = []
    for number, corner in enumerate(corners):
        (top, left), (bottom, right) = ((place * scale).astype(int) for place in (corner, corner + WINDOW))
        names.append(f"windows/{number:02}.jpg")
        crop = (scene.photo[top:bottom, left:right] * 255).round().astype(np.uint8)
        container.write_bytes(folder / names[-1], encoded(crop, 85))
    labels = ["correct" if is_correct else "misplaced" for is_correct in alignment.is_correct]
    sizes = {"height": [float(crop.shape[0])] * len(names), "width": [float(crop.shape[1])] * len(names)}
    titles = [f"window {number}" for number in range(len(names))]
    items = Items({"path": names, "title": titles, "label": labels, **sizes}, folder.absolute())
    return Collection(X, scene.vocabulary, items, SECTIONS)


def draw(path: Path, scene: Scene, corners: NDArray[np.int64], model: CountingGrid, alignment: Alignment) -> None:
    """Plot the photo with its windows beside the grid, shifted to the origin of the photo."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    fitted = np.roll(model.pi_ @ scene.palette, -alignment.shift, axis=(0, 1))[: SCENE[0], : SCENE[1]]
    was_seen = np.zeros((*SCENE, 1), dtype=bool)
    for row, column in corners:
        was_seen[row : row + WINDOW[0], column : column + WINDOW[1]] = True
    figure = Figure(figsize=(13, 4.75), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    extent = (-0.5, SCENE[1] - 0.5, SCENE[0] - 0.5, -0.5)
    left.imshow(scene.photo, extent=extent, aspect="auto")
    left.set_title(
        f"a photo; {N_WINDOWS} windows are cut out of it in {N_COLORS} colors and {SCENE[1]} x {SCENE[0]} pixels"
    )
    for (row, column), is_correct in zip(corners, alignment.is_correct, strict=True):
        color = "white" if is_correct else "red"
        left.add_patch(Rectangle((column - 0.5, row - 0.5), *WINDOW[::-1], fill=False, edgecolor=color, linewidth=0.6))
    right.imshow(np.where(was_seen, fitted.clip(0, 1), 1.0), extent=extent, aspect="auto")
    right.set_title(
        f"the grid, from 4 histograms of each window: {alignment.is_correct.sum()} of {N_WINDOWS} back in place"
    )
    for axes in (left, right):
        axes.axis("off")
    container.write_figure(path, figure, dpi=100)
