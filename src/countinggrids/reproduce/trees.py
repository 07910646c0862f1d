"""Layout reconstruction: windows of a drawing are located from 1x1, 2x2 and 4x4 bags, and by hybrids."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.alignment import align
from countinggrids.data import container
from countinggrids.features.bagger import bag
from countinggrids.models import CountingGrid, HybridEpitome
from countinggrids.reproduce import demo
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.report import Report, comparison_table, figure

Array = NDArray[Any]
WINDOW = 16
ANNEALED: dict[str, Any] = {"location_prior": "uniform", "eta": 0.01, "anneal": (0.01, 1.03, 1.0), "max_iter": 1000}
QUICK = (0.02, 1.1, 1.0)


class Case(NamedTuple):
    """One panel of the figure: its name, the sections of its bags, and its model, from a grid and a seed."""

    name: str
    sections: int
    make: Callable[[Any, int], Any]


CASES = (
    Case("1x1", 1, lambda grid, seed: CountingGrid(grid, WINDOW, random_state=seed)),
    Case("annealed, 1x1", 1, lambda grid, seed: CountingGrid(grid, WINDOW, random_state=seed, **ANNEALED)),
    Case("2x2", 2, lambda grid, seed: CountingGrid(grid, WINDOW, 2, random_state=seed)),
    Case("4x4", 4, lambda grid, seed: CountingGrid(grid, WINDOW, 4, random_state=seed)),
    Case("hybrid, matched 1x1", 16, lambda grid, seed: HybridEpitome(grid, WINDOW, random_state=seed)),
    Case("hybrid, matched 2x2", 16, lambda grid, seed: HybridEpitome(grid, WINDOW, 2, random_state=seed)),
)


def run(experiment: Experiment) -> Report:
    """Fit the grid of every panel for each seed; evaluate locations and pixels."""
    scene, data = _scene(experiment)
    scores: dict[str, dict[str, list[float]]] = {"windows within one cell, %": {}, "pixels of the same color, %": {}}
    pictures = []
    for case in CASES:
        results = [
            experiment.step(
                f"trees {case.name}, seed {seed}",
                {"data": data},
                partial(_evaluate, scene, case, seed, experiment.is_quick),
            )
            for seed in experiment.seeds
        ]
        for models, kind in zip(scores.values(), ("windows", "pixels"), strict=True):
            models[case.name] = [each[kind] for each in results]
        pictures.append(np.array(results[0]["colors"]) / 255)
    _draw(experiment, scene, pictures)
    notes = [
        "Fifty windows of 16x16, 64 colors treated as unrelated features, grid 40x48; default settings, but for the "
        "annealed grid a uniform prior, eta 0.01, inverse temperatures from 0.01 that grow by 3%, and no first "
        "layout from the distances between bags. Locations are compared up to one common shift; for bags without "
        "sections also up to reflections and swapped axes. Pixels are those that some window shows, with the most "
        "likely color of the cell at the best alignment of grid and drawing. The paper shows pictures and no "
        "values."
    ]
    table = comparison_table("Layout reconstruction", scores, CASES[0].name)
    return Report("trees", "A drawing from fifty histograms", data, [table], notes, "trees.png", shows_data=True)


def _scene(experiment: Experiment) -> tuple[demo.Scene, str]:
    if experiment.data is not None and (experiment.data / "trees" / "trees.npz").is_file():
        return demo.tree_scene(experiment.data), "Data: the drawing of the paper, `trees`, at 33x40 pixels."
    return (
        demo.photo_scene(),
        "Data: a photo that ships with scikit-learn stands in for the drawing of the paper, which is unavailable.",
    )


def _evaluate(scene: demo.Scene, case: Case, seed: int, is_quick: bool) -> dict[str, Any]:
    """Fit one grid; return the accuracy of windows and pixels, and its colors, aligned with the scene."""
    rng = np.random.default_rng(seed)
    corners = np.stack([rng.integers(0, n - WINDOW + 1, 50) for n in scene.labels.shape], axis=1)
    maps = [scene.labels[r : r + WINDOW, c : c + WINDOW] for r, c in corners]
    X = bag(maps, case.sections, demo.N_COLORS)
    model = case.make(scene.grid, seed)
    model = (model.set_params(anneal=QUICK) if is_quick else model).fit(X)
    is_free = case.name.endswith("1x1")
    alignment = align(model.locate(X), corners, scene.grid, has_symmetries=is_free)
    is_seen = np.zeros(scene.labels.shape, bool)
    for r, c in corners:
        is_seen[r : r + WINDOW, c : c + WINDOW] = True
    candidates = [_aligned(pi, scene.labels, is_seen) for pi in _turns(model.pi_, is_free)]
    _, aligned = max(candidates, key=lambda each: each[0])
    pixels = (aligned.argmax(axis=-1) == scene.labels)[is_seen].mean()
    colors = (255 * aligned @ scene.palette).clip(0, 255).round().astype(int).tolist()
    return {"windows": float(alignment.is_correct.mean()), "pixels": float(pixels), "colors": colors}


def _turns(pi: Array, is_free: bool) -> Iterator[Array]:
    """Yield a grid, and where bags have no orientation, its reflections and those with swapped axes."""
    for turned in (pi, pi.swapaxes(0, 1)) if is_free else (pi,):
        yield turned
        if is_free:
            yield from (turned[::-1], turned[:, ::-1], turned[::-1, ::-1])


def _aligned(pi: Array, labels: Array, is_seen: Array) -> tuple[float, Array]:
    """Shift a grid to where it agrees best with the visible pixels; return the score, and the cells of the pixels."""
    scores = np.zeros(pi.shape[:2])
    for color in range(pi.shape[2]):
        mask = np.zeros(pi.shape[:2])
        here = (is_seen & (labels == color))[: pi.shape[0], : pi.shape[1]]
        mask[: here.shape[0], : here.shape[1]] = here
        scores += np.fft.irfft2(np.fft.rfft2(pi[..., color]) * np.fft.rfft2(mask).conj(), pi.shape[:2])
    shift = np.unravel_index(scores.argmax(), scores.shape)
    rows, columns = ((np.arange(n) + by) % size for n, by, size in zip(labels.shape, shift, pi.shape, strict=False))
    return float(scores.max()), pi[np.ix_(rows, columns)]


def _draw(experiment: Experiment, scene: demo.Scene, pictures: list[Array]) -> None:
    """Plot the scene, and the aligned grid of every panel."""
    made = figure(15, 3)
    panels = made.subplots(1, 1 + len(CASES))
    titles = ["the drawing", *(case.name for case in CASES)]
    for axes, colors, title in zip(panels, [scene.palette[scene.labels], *pictures], titles, strict=True):
        axes.imshow(np.clip(colors, 0, 1))
        axes.set_title(title)
        axes.axis("off")
    container.write_figure(experiment.folder / "trees.png", made)
