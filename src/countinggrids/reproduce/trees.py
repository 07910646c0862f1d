"""The layout reconstruction: windows of a drawing put back from 1x1, 2x2 and 4x4 bags, and by the hybrid."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countinggrids import demo
from countinggrids.alignment import align
from countinggrids.bags import bag
from countinggrids.reproduce.report import Report, Table, figure, spread
from countinggrids.reproduce.workshop import Workshop
from countinggrids.rows import CountingGrid, HybridEpitome

Array = NDArray[Any]
WINDOW = 16
ONE_BAG: dict[str, Any] = {"location_prior": "uniform", "eta": 0.01, "anneal": (0.01, 1.03, 1.0), "max_iter": 1000}


QUICK = (0.02, 1.1, 1.0)


class Case(NamedTuple):
    """One panel of the figure: its name, the sections of its bags, and its model, from a grid and a seed."""

    name: str
    sections: int
    make: Callable[[Any, int], Any]


CASES = (
    Case("1x1", 1, lambda grid, seed: CountingGrid(grid, WINDOW, random_state=seed, **ONE_BAG)),
    Case("2x2", 2, lambda grid, seed: CountingGrid(grid, WINDOW, 2, random_state=seed)),
    Case("4x4", 4, lambda grid, seed: CountingGrid(grid, WINDOW, 4, random_state=seed)),
    Case("hybrid, matched 1x1", 16, lambda grid, seed: HybridEpitome(grid, WINDOW, random_state=seed)),
    Case("hybrid, matched 2x2", 16, lambda grid, seed: HybridEpitome(grid, WINDOW, 2, random_state=seed)),
)


def run(shop: Workshop) -> Report:
    """Learn every panel's grid for each seed; tell how many windows and pixels come back."""
    scene, data = _scene(shop)
    rows, drawn = [], []
    for case in CASES:
        found = [
            shop.step(
                f"trees {case.name}, seed {seed}", {"data": data}, partial(_tried, scene, case, seed, shop.is_quick)
            )
            for seed in shop.seeds
        ]
        rows.append([case.name, *(spread([each[kind] for each in found]) for kind in ("windows", "pixels"))])
        drawn.append(np.array(found[0]["colours"]) / 255)
    _draw(shop, scene, drawn)
    header = ["bags", "windows within one cell, %", "pixels of the right colour, %"]
    notes = [
        "Fifty windows of 16x16, 64 colours treated as unrelated features, grid 40x48; default settings, but a "
        "uniform prior, eta 0.01 and beta from 0.01 upwards by 3% for 1x1, where they do better. A window is back "
        "within one cell, up to one common shift; for bags without sections reflections and swapped axes count as "
        "right too. A pixel is right if the likeliest colour of its cell is its own, among the pixels that some "
        "window shows, with the grid laid over the drawing as well as it can be. The paper shows pictures and no "
        "figures."
    ]
    table = Table("Layout reconstruction", header, rows)
    return Report("trees", "A drawing from fifty histograms", data, [table], notes, "trees.png")


def _scene(shop: Workshop) -> tuple[demo.Scene, str]:
    if shop.data is not None and (shop.data / "trees" / "trees.npz").is_file():
        return demo.tree_scene(shop.data), "Data: the paper's drawing, `trees`, at 33x40 pixels."
    return (
        demo.photo_scene(),
        "Data: a photo that ships with scikit-learn stands in for the paper's drawing, which is not here.",
    )


def _tried(scene: demo.Scene, case: Case, seed: int, is_quick: bool) -> dict[str, Any]:
    """Learn one grid; give the shares that are right, and its colours, laid over the scene."""
    rng = np.random.default_rng(seed)
    corners = np.stack([rng.integers(0, n - WINDOW + 1, 50) for n in scene.labels.shape], axis=1)
    maps = [scene.labels[r : r + WINDOW, c : c + WINDOW] for r, c in corners]
    X = bag(maps, case.sections, demo.N_COLOURS)
    model = case.make(scene.grid, seed)
    model = (model.set_params(anneal=QUICK) if is_quick else model).fit(X)
    is_free = case.name.endswith("1x1")
    alignment = align(model.locate(X), corners, scene.grid, has_symmetries=is_free)
    is_seen = np.zeros(scene.labels.shape, bool)
    for r, c in corners:
        is_seen[r : r + WINDOW, c : c + WINDOW] = True
    laid = max((_laid_over(pi, scene.labels, is_seen) for pi in _turns(model.pi_, is_free)), key=lambda each: each[0])[
        1
    ]
    pixels = (laid.argmax(axis=-1) == scene.labels)[is_seen].mean()
    colours = (255 * laid @ scene.palette).clip(0, 255).round().astype(int).tolist()
    return {"windows": float(alignment.is_right.mean()), "pixels": float(pixels), "colours": colours}


def _turns(pi: Array, is_free: bool) -> Iterator[Array]:
    """Give a grid as it is, and where bags cannot tell, reflected and with its axes swapped."""
    for turned in (pi, pi.swapaxes(0, 1)) if is_free else (pi,):
        yield turned
        if is_free:
            yield from (turned[::-1], turned[:, ::-1], turned[::-1, ::-1])


def _laid_over(pi: Array, labels: Array, is_seen: Array) -> tuple[float, Array]:
    """Shift a grid to where it agrees best with the pixels that were seen; give how well, and what lies over them."""
    scores = np.zeros(pi.shape[:2])
    for colour in range(pi.shape[2]):
        wanted = np.zeros(pi.shape[:2])
        here = (is_seen & (labels == colour))[: pi.shape[0], : pi.shape[1]]
        wanted[: here.shape[0], : here.shape[1]] = here
        scores += np.fft.irfft2(np.fft.rfft2(pi[..., colour]) * np.fft.rfft2(wanted).conj(), pi.shape[:2])
    shift = np.unravel_index(scores.argmax(), scores.shape)
    rows, columns = ((np.arange(n) + by) % size for n, by, size in zip(labels.shape, shift, pi.shape, strict=False))
    return float(scores.max()), pi[np.ix_(rows, columns)]


def _draw(shop: Workshop, scene: demo.Scene, drawn: list[Array]) -> None:
    """Draw the scene, and every panel's grid laid over it."""
    made = figure(15, 3)
    panels = made.subplots(1, 1 + len(CASES))
    titles = ["the drawing", *(case.name for case in CASES)]
    for axes, colours, title in zip(panels, [scene.palette[scene.labels], *drawn], titles, strict=True):
        axes.imshow(np.clip(colours, 0, 1))
        axes.set_title(title)
        axes.axis("off")
    made.savefig(shop.folder / "trees.png")
