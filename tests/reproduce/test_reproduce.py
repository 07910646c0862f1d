"""Reproduction of the paper: cached steps, reports, and the quick version of every experiment."""

import json
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids import reproduce
from countinggrids.cli import app
from countinggrids.data.items import Items
from countinggrids.reproduce import (
    comparison,
    places,
    scales,
    scenes15,
    sequences,
    station,
    systems,
    tower,
    trees,
    whole_maps,
)
from countinggrids.reproduce import experiment as experiments
from countinggrids.reproduce import problem as problems
from countinggrids.reproduce.experiment import Experiment, source_digest
from countinggrids.reproduce.report import Report, Table, comparison_table, mean_and_spread, write_pages

RUN = CliRunner()


@pytest.fixture
def experiment(tmp_path):
    return Experiment("station", tmp_path, is_quick=True, log=lambda text: None)


def test_a_step_is_computed_once_for_each_of_its_settings(experiment):
    calls = []
    compute = lambda: calls.append(1) or {"n": len(calls)}  # noqa: E731
    assert experiment.step("count", {"a": 1}, compute) == {"n": 1}
    assert experiment.step("count", {"a": 1}, compute) == {"n": 1}
    assert experiment.step("count", {"a": 2}, compute) == {"n": 2}
    experiment.is_fresh = True
    assert experiment.step("count", {"a": 1}, compute) == {"n": 3}
    experiment.is_quick, experiment.is_fresh = False, False
    assert experiment.step("count", {"a": 1}, compute) == {"n": 4}


def test_a_step_is_computed_again_when_the_code_changes(experiment, monkeypatch):
    assert experiment.step("count", {}, lambda: 1) == 1
    monkeypatch.setattr(experiments, "source_digest", lambda name: "another")
    changed = Experiment("station", experiment.folder, is_quick=True, log=lambda text: None)
    assert changed.step("count", {}, lambda: 2) == 2
    assert experiment.step("count", {}, lambda: pytest.fail("it is cached")) == 1


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "countinggrids"
    shutil.copytree(experiments.SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize(
    "module",
    ["core/em.py", "kernels/counts.py", "backends/dask/backend.py", "training/loop.py", "meta/classifier.py",
     "baselines/lda.py", "features/sift.py", "reproduce/clustering.py", "reproduce/sequences.py", "reproduce/tower.py",
     "reproduce/problem.py"],
)  # fmt: skip
def test_the_digest_changes_with_the_code_that_results_depend_on(sources, module):
    before = source_digest("clustering", sources)
    assert before == source_digest("clustering")
    path = sources / module
    path.write_text(path.read_text() + "\n# changed\n")
    assert source_digest("clustering", sources) != before


@pytest.mark.parametrize("module", ["plot/film.py", "cli/meta.py", "reproduce/trees.py", "reproduce/report.py"])
def test_the_digest_does_not_change_with_other_code(sources, module):
    before = source_digest("clustering", sources)
    path = sources / module
    path.write_text(path.read_text() + "\n# changed\n")
    assert source_digest("clustering", sources) == before


def test_progress_is_shown_while_a_step_is_computed(experiment):
    shown = []

    @contextmanager
    def progress(what):
        shown.append(what)
        try:
            yield
        finally:
            shown.append("over")

    experiment.progress = progress
    assert experiment.step("a step", {}, lambda: list(shown)) == ["a step"]
    experiment.step("a step", {}, lambda: pytest.fail("it is cached"))
    with pytest.raises(ZeroDivisionError):
        experiment.step("another", {}, lambda: 1 // 0)
    assert shown == ["a step", "over", "another", "over"]


def test_a_step_that_fails_is_not_cached(experiment):
    with pytest.raises(ZeroDivisionError):
        experiment.step("fails", {}, lambda: 1 // 0)
    assert experiment.step("fails", {}, lambda: 5) == 5


def test_commits_and_seconds_are_those_of_the_steps(experiment):
    experiment.step("a nap", {}, lambda: time.sleep(0.3))
    assert len(experiment.commits) == 1
    assert experiment.seconds >= 0.3


def test_a_report_is_read_as_it_was_written(tmp_path):
    report = Report(
        "x", "An x", "Data: none.", [Table("of", ["a", "b"], [["1", "2"]])], ["A note."], "x.png", ["abc"], 95.0,
        n_splits=3,
    )  # fmt: skip
    report.save(tmp_path)
    assert Report.load(tmp_path / "x.json") == report
    assert "`countinggrids reproduce x --splits 3`, at commit abc, 2 minutes" in report.text()
    assert "| a | b |\n| --- | --- |\n| 1 | 2 |" in (tmp_path / "x.md").read_text()


def test_a_page_stays_where_there_is_no_report(tmp_path):
    reports, pages = tmp_path / "reports", tmp_path / "pages"
    reports.mkdir()
    for name in ("x", "y"):
        Report(name, f"An {name}", "Data: none.", [], ["A note."]).save(reports)
    write_pages(reports, ["missing", "x", "y"], pages)
    assert sorted(path.name for path in pages.iterdir()) == ["x.json", "x.md", "y.json", "y.md"]
    assert (pages / "x.md").read_text().startswith("# An x\n")
    assert Report.load(pages / "x.json") == Report.load(reports / "x.json")
    (reports / "x.json").unlink()
    Report("y", "An y", "Data: others.", []).save(reports)
    write_pages(reports, ["x", "y"], pages)
    assert "Data: none." in (pages / "x.md").read_text()
    assert "Data: others." in (pages / "y.md").read_text()


def test_a_page_keeps_what_was_written_by_hand(tmp_path):
    reports, pages = tmp_path / "reports", tmp_path / "pages"
    reports.mkdir()
    Report("x", "An x", "Data: none.", []).save(reports)
    write_pages(reports, ["x"], pages)
    path = pages / "x.md"
    path.write_text(path.read_text() + "\n## Discussion\n\nWritten by hand.\n\n## More\n\nThis too.\n")
    Report("x", "An x", "Data: others.", []).save(reports)
    write_pages(reports, ["x"], pages)
    after = path.read_text()
    assert "Data: others." in after
    assert "Data: none." not in after
    assert after.endswith("\n\n## Discussion\n\nWritten by hand.\n\n## More\n\nThis too.\n")
    write_pages(reports, ["x"], pages)
    assert path.read_text() == after


def test_a_figure_that_shows_data_is_not_published(tmp_path):
    reports, pages = tmp_path / "reports", tmp_path / "pages"
    reports.mkdir()
    for name in ("curve", "photo"):
        (reports / f"{name}.png").write_bytes(name.encode())
        Report(name, name, "", [], picture=f"{name}.png", shows_data=name == "photo").save(reports)
    write_pages(reports, ["curve", "photo"], pages)
    assert (pages / "curve.png").read_bytes() == b"curve"
    assert "(curve.png)" in (pages / "curve.md").read_text()
    assert not (pages / "photo.png").exists()
    assert "png" not in (pages / "photo.md").read_text()


def test_values_are_in_percent():
    assert mean_and_spread([0.5]) == "50.0"
    assert mean_and_spread([0.5, 0.6]) == "55.0 +- 5.0"


def test_differences_are_paired_by_split():
    accuracy = {"LDA": [0.5, 0.7], "grid": [0.6, 0.76]}
    table = comparison_table("Accuracy", {"accuracy, %": accuracy}, "LDA", {"LDA": 57.05, "grid": None})
    assert table.header == ["model", "accuracy, %", "difference", "paper"]
    assert table.rows == [["LDA", "60.0 +- 10.0", "reference", "57.0"], ["grid", "68.0 +- 8.0", "+8.0 +- 2.0", ""]]
    assert table.values == {"accuracy, %": accuracy}
    difference = table.differences["accuracy, %"]["grid"]
    assert difference == {"mean": pytest.approx(0.08), "std": pytest.approx(0.02), "n_splits": 2}
    assert "differences from LDA, paired by split" in table.caption
    single = comparison_table("Accuracy", {"accuracy, %": {"LDA": [0.5], "grid": [0.4]}}, "LDA")
    assert single.rows[1] == ["grid", "40.0", "-10.0"]
    assert single.differences["accuracy, %"]["grid"]["std"] is None


def test_no_conclusion_is_a_string_in_the_code():
    """Results are computed; a measured percentage in the text of a module would be printed whatever a run gave."""
    measured = re.compile(r"\d+\.\d+ ?%|\bhad \d|\b(above|below|level with) (LDA|it|the plain)|\bpoints?\b")
    for path in (experiments.SOURCES / "reproduce").glob("*.py"):
        assert not measured.search(path.read_text()), path.name
    assert not list((experiments.SOURCES / "reproduce").glob("*.md"))


def test_no_window_of_the_station_shows_all_of_d():
    assert len(station.five()) == 5
    drawn = station.scene()
    wanted = np.unique(drawn[station.D[0] :, station.D[1] :][: station.WINDOW[0], : station.WINDOW[1]])
    corners, like_d = station.windows(0)
    shows_all = [np.isin(wanted, drawn[r : r + station.WINDOW[0], c : c + station.WINDOW[1]]).all() for r, c in corners]
    assert len(corners) == 50
    assert not any(shows_all)
    assert station.D in {tuple(corner) for corner in like_d.tolist()}
    assert set(np.unique(drawn)) == set(range(8))


def test_a_grid_is_aligned_with_the_scene_it_holds(rng):
    labels = rng.integers(0, 5, (6, 8))
    pi = np.full((9, 10, 5), 0.2)
    pi[2:8, 1:9] = np.eye(5)[labels]
    score, aligned = trees._aligned(np.roll(pi, (4, -3), (0, 1)), labels, np.ones((6, 8), bool))
    assert (aligned.argmax(-1) == labels).all()
    assert score == pytest.approx(48)


def frames(lengths):
    names = [f"clip {i}" for i, n in enumerate(lengths) for _ in range(n)]
    return Items({"sequence": names, "time": [float(t) for n in lengths for t in range(n)], "label": names})


def test_held_out_frames_are_one_run_of_every_clip():
    items = frames([20, 30, 10])
    is_train = sequences.held_in(items, 3)
    for name in ("clip 0", "clip 1", "clip 2"):
        held = np.flatnonzero(~is_train[items["sequence"] == name])
        assert 0.2 <= len(held) / (items["sequence"] == name).sum() <= 0.4
        assert (np.diff(held) == 1).all()
    assert (sequences.held_in(items, 3) == is_train).all()
    assert (sequences.held_in(items, 4) != is_train).any()


def test_a_place_has_whole_clips_and_not_too_many_frames():
    items = frames([30, 50, 40, 30, 200, 5])
    items = items.with_columns(label=["often"] * 150 + ["long"] * 200 + ["rarely"] * 5)
    kept = tower.few_clips(items, most=100)
    names, lengths = np.unique(kept["sequence"].astype(str), return_counts=True)
    assert {"clip 4", "clip 5"} <= set(names)  # at least one clip of each place, however long
    assert 50 <= (kept["label"] == "often").sum() <= 100
    assert all(n == (items["sequence"] == name).sum() for name, n in zip(names, lengths, strict=True))


def test_position_runs_along_each_clip():
    assert tower.position(frames([4, 2])).tolist() == [0, 0.25, 0.5, 0.75, 0, 0.5]


def test_folds_are_runs_of_every_clip():
    items = frames([9, 7, 2])
    tested = [fold[1] for fold in tower.folds(items)]
    assert sorted(np.concatenate(tested)) == list(range(18))
    assert all(sorted([*train, *test]) == list(range(18)) for train, test in tower.folds(items))
    assert [list(each[each < 9]) for each in tested] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_components_and_grids_are_selected_on_training_frames(experiment, rng, monkeypatch):
    """One place has frames of two kinds, which together look like those of the other."""
    items = frames([30] * 4).with_columns(label=np.repeat(["near", "far"], 60))
    kinds = np.array([[9, 0, 1, 1], [0, 9, 1, 1], [5, 5, 1, 1], [5, 5, 1, 1]])
    kind = np.where(np.arange(120) < 60, np.arange(120) % 2, 2)
    X = np.hstack([rng.poisson(kinds[kind] * 3.0), np.zeros((120, 15 * 4))])
    experiment.is_quick = False
    monkeypatch.setitem(sequences.CHOICES, "mixture", {"n_components": (1, 2)})
    monkeypatch.setitem(sequences.CHOICES, "counting grid 2x1", {"grid": ((4, 4), (6, 6))})
    assert sequences.select(experiment, "mixture", X, items)[-1].estimator.n_components == 2
    grid = sequences.select(experiment, "counting grid 2x1", X, items)[-1].estimator
    assert (grid.grid in ((4, 4), (6, 6)), grid.sections) == (True, (2, 1))


def test_few_frames_come_from_the_first_part_of_each_place():
    labels, where = np.repeat(["a", "b"], 40), np.tile(np.arange(40) / 40, 2)
    chosen = places._few(labels, where, 0)
    assert (chosen[:40].sum(), chosen[40:].sum()) == (13, 13)
    assert where[chosen].max() < 0.7


def problem(rng):
    """Three classes whose bags differ in words and in where these are."""
    shares = rng.dirichlet(np.full(12, 0.3), (3, 16))
    X, y = [], np.repeat(["a", "b", "c"], 20)
    for name in y:
        X.append(np.concatenate([rng.multinomial(20, p) for p in shares["abc".index(name)]]))
    X = np.array(X, dtype=np.float32)
    is_train = np.arange(60) % 2 == 0
    return systems.Problem(X[is_train], y[is_train], X[~is_train], y[~is_train], is_quick=True)


def test_systems_are_better_than_chance(rng):
    given = problem(rng)
    for name, predict in systems.SYSTEMS.items():
        if "hybrid" not in name:
            predicted, settings = predict(given)
            assert given.accuracy(predicted) > 0.6, name
            assert isinstance(settings, str)


def test_maps_are_stretched_without_empty_sections(rng):
    labels = rng.integers(0, 9, (5, 13))
    once = whole_maps.bags_of_maps([labels], 9, side=10).toarray().reshape(100, 9)
    assert (once.sum(axis=1) == 1).all()
    assert (cg.bag([labels], (10, 10), 9).toarray().reshape(100, 9).sum(axis=1) == 0).any()
    np.testing.assert_array_equal(whole_maps.stretched(np.array([[1, 2], [3, 4]]), (4, 2)), [[1, 2]] * 2 + [[3, 4]] * 2)
    np.testing.assert_array_equal(whole_maps.stretched(labels, labels.shape), labels)


@pytest.mark.parametrize("name", systems.ON_MAPS)
def test_hybrids_of_whole_maps_select_their_capacity(rng, monkeypatch, name):
    """Classes differ in their words; the capacities of all folds are tried, and the best one is reported."""
    shares = rng.dirichlet(np.full(6, 0.2), 2)
    maps = [rng.choice(6, (6, 6), p=shares[i % 2]) for i in range(24)]
    y, bags = np.tile(["a", "b"], 12), whole_maps.bags_of_maps(maps, 6, side=6)
    coarse = np.zeros((24, 16 * 6))
    given = systems.Problem(
        coarse[:16], y[:16], coarse[16:], y[16:], is_quick=True, whole=lambda: (bags[:16], bags[16:])
    )
    tried = []
    monkeypatch.setattr(
        whole_maps, "cross_val_score", lambda model, X, y, cv: tried.append(cv) or np.full(2, len(tried))
    )
    monkeypatch.setattr(systems.Problem, "is_short", False)
    predicted, settings = systems.SYSTEMS[name](given)
    assert settings == "capacity 8"
    assert tried == [given.folds] * len(whole_maps.CAPACITIES)
    assert given.accuracy(predicted) > 0.8
    with pytest.raises(ValueError, match="whole=None must be a function"):
        systems.SYSTEMS[name](replace(given, whole=None))


@pytest.mark.parametrize(("is_quick", "wanted"), [(False, ["uniform", "embedding"]), (True, ["uniform", "uniform"])])
def test_hybrids_of_whole_maps_start_as_their_names_say(rng, monkeypatch, is_quick, wanted):
    class Constant:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(X.shape[0])

    starts = []
    monkeypatch.setattr(whole_maps, "select_capacity", lambda *arguments: 4.0)
    monkeypatch.setattr(whole_maps, "classifier", lambda *arguments: starts.append(arguments[-1]) or Constant())
    bags = whole_maps.bags_of_maps([rng.integers(0, 12, (6, 6))] * 60, 12, side=6)
    given = replace(problem(rng), is_quick=is_quick, whole=lambda: (bags[:30], bags[30:]))
    for name in systems.ON_MAPS:
        systems.SYSTEMS[name](given)
    assert starts == wanted


def test_the_grid_of_whole_maps_has_the_capacity():
    assert [whole_maps.cells_along(c, 31) for c in whole_maps.CAPACITIES] == [38, 49, 62, 76, 88]


@pytest.mark.parametrize(("is_thorough", "n_estimators"), [(True, 3), (False, 1)])
def test_a_thorough_problem_averages_models_during_selection(rng, monkeypatch, is_thorough, n_estimators):
    given = replace(problem(rng), is_quick=False, powers=(0.7, 1.0), is_thorough=is_thorough)
    averaged, kept = [], []

    class Grids(problems.CapacitySearch):
        def fit(self, X, y):
            averaged.append(self.n_estimators)
            kept.append(self.keep)
            return super().fit(X, y)

    class Baselines(systems.GridSearchCV):
        def fit(self, X, y):
            averaged.append(self.estimator[-1].n_estimators)
            return super().fit(X, y)

    monkeypatch.setattr(problems, "CapacitySearch", Grids)
    monkeypatch.setattr(systems, "GridSearchCV", Baselines)
    problems.select(given, 1, (4,), (2,), (0.7,))
    systems.SYSTEMS["mixture"](given)
    assert averaged == [n_estimators, n_estimators]
    assert kept == [1.0 if is_thorough else 0.5]


def test_rows_of_every_size_are_two_cells_high(rng, monkeypatch):
    class Constant:
        def predict(self, X):
            return np.zeros(len(X))

    def fit_grids(problem, candidates):
        shapes.extend((each.grid, each.window, each.sections) for each in candidates)
        return Constant()

    shapes = []
    monkeypatch.setattr(systems, "fit_grids", fit_grids)
    predict = systems.SYSTEMS["counting grid in rows, three sizes averaged"]
    _, settings = predict(replace(problem(rng), is_quick=False))
    assert shapes == [((12, 12), (4, 4), (2, 1)), ((16, 16), (8, 8), (4, 1)), ((24, 24), (8, 8), (4, 1))]
    assert settings == "grids 12x12/4x4 in 2x1, 16x16/8x8 in 4x1, 24x24/8x8 in 4x1, power 0.7"


def test_a_comparison_caches_its_steps_and_has_the_values_of_the_paper(experiment, rng):
    computed = []

    def split(seed):
        computed.append(seed)
        return problem(np.random.default_rng(seed))

    names = ["mixture", "spatial pyramid kernel 4x4"]
    tables = [
        comparison.compare(experiment, "toy", split, {"mixture": 12.3}, {}, names, range(2), "mixture")[0]
        for _ in range(2)
    ]
    assert tables[0] == tables[1]
    assert computed == [0, 1]
    assert [tables[0].rows[0][i] for i in (0, 2, 3)] == ["mixture", "reference", "12.3"]
    assert tables[0].rows[1][3] == ""
    accuracy = tables[0].values["accuracy, %"]
    paired = np.subtract(accuracy[names[1]], accuracy[names[0]])
    assert tables[0].differences["accuracy, %"][names[1]]["mean"] == pytest.approx(paired.mean())


def test_comparisons_of_scenes_are_without_systems_of_sequences(experiment, monkeypatch):
    monkeypatch.setattr(comparison, "evaluate", lambda problem, system: {"accuracy": 0.5, "settings": system})
    table, _ = comparison.compare(experiment, "toy", lambda seed: None, {}, {}, seeds=[0])
    assert set(systems.ON_SEQUENCES) < set(systems.SYSTEMS)
    assert [row[0] for row in table.rows] == [name for name in systems.SYSTEMS if name not in systems.ON_SEQUENCES]


def test_features_of_several_kinds_are_concatenated_in_each_section(rng):
    words, colors = rng.poisson(2.0, (3, 16, 5)), rng.poisson(2.0, (3, 16, 2))
    both = scales._side_by_side([words.reshape(3, -1), colors.reshape(3, -1)]).reshape(3, 16, 7)
    np.testing.assert_array_equal(both[..., :5], words)
    np.testing.assert_array_equal(both[..., 5:], colors)


def test_a_split_has_as_many_training_images_of_each_class():
    labels = np.array(["b"] * 7 + ["a"] * 5)
    train, test = scenes15.divided(labels, 4, 0)
    assert labels[train].tolist() == ["a"] * 4 + ["b"] * 4
    assert sorted([*train, *test]) == list(range(12))
    assert train.tolist() != scenes15.divided(labels, 4, 1)[0].tolist()


def striped(folder, rng, n):
    """Draw pictures with stripes along one of two directions, and list them."""
    folder.mkdir()
    rows = []
    for label in ("down", "across"):
        for i in range(n):
            wave = 128 + 90 * np.sin(np.arange(96) * rng.uniform(0.3, 0.9) + rng.uniform(0, 6))
            pixels = np.tile(wave, (96, 1)) + rng.normal(0, 8, (96, 96))
            path = folder / f"{label}{i}.png"
            Image.fromarray((pixels.T if label == "across" else pixels).clip(0, 255).astype(np.uint8)).save(path)
            rows.append((path.name, label))
    return Items({"path": [name for name, _ in rows], "label": [label for _, label in rows]}, folder)


@pytest.mark.parametrize("name", [*sequences.STANDING, "elastic grid 4x4"])
def test_models_of_walks_can_be_tracked(name, rng):
    places = np.repeat(["hall", "stairs", "yard"], 20)
    chances = dict(zip(np.unique(places), rng.dirichlet(np.full(16 * 10, 0.1), 3), strict=True))
    X = np.array([rng.multinomial(300, chances[place]) for place in places]).astype(float)
    model = sequences.bag_models((0.3, 1.4, 1.0))[name]
    tracker = cg.PlaceTracker(model).fit(X[::2], places[::2], [10, 10, 10])
    q = tracker.filter(X[1::2], [10, 10, 10])
    assert np.mean(tracker.classes_[q.argmax(axis=1)] == places[1::2]) > 0.9


def test_scales_classify_stripes(experiment, rng, tmp_path):
    items = striped(tmp_path / "pictures", rng, 12)
    divide = partial(scenes15.divided, items["label"].astype(str), 8)
    selection = divide(0)[1][1:]
    one, three = scales.tables(experiment, items, divide, selection)
    assert [row[0] for row in one.rows] == [scales.PYRAMID, scales.SCORES, scales.BOTH]
    assert [row[0] for row in three.rows] == [*scales.MODELS, *(row[0] for row in one.rows)]
    assert min(float(row[1]) for row in [*one.rows, *three.rows]) > 80
    assert {row[3] for row in three.rows} <= {"0.0", "100.0"}  # one image is not used for model selection


def test_the_command_writes_report_picture_and_page(tmp_path):
    results = tmp_path / "pages"
    arguments = ["reproduce", "station", "--quick", "-o", str(tmp_path / "out"), "--results", str(results)]
    first = RUN.invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert (tmp_path / "out" / "station.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((tmp_path / "out" / "station.json").read_text())
    assert report["is_quick"]
    table = report["tables"][0]
    values = {name: each[0] for name, each in table["values"]["log p of D, per feature"].items()}
    assert values["counting grid"] == max(values.values())
    assert table["reference"] == "counting grid"
    assert all(each["mean"] <= 0 for each in table["differences"]["log p of D, per feature"].values())
    assert first.stdout.strip() in (results / "station.md").read_text()
    assert (results / "station.png").is_file()
    began = time.perf_counter()
    assert RUN.invoke(app, arguments).stdout == first.stdout
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "name='nothing' must be an experiment; use one of station, trees"),
        (
            "scenes15",
            r"15scenes\.tar must be in the folder of the data sets \(looked in no folder, because",
        ),
        ("sequences", r"ietower\.tar and ietower\.csv must be in the folder of the data sets"),
        ("indoor67", r"indoor67 or 15scenes\.tar must be in the folder of the data sets"),
        ("panning", "panoramas must be in the folder of the data sets"),
    ],
)
def test_missing_data_and_wrong_names_are_refused(tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        reproduce.reproduce(name, tmp_path, is_quick=True)


def test_the_folder_that_was_looked_in_is_named(tmp_path):
    for name in ("scenes15", "sequences", "indoor67", "panning"):
        with pytest.raises(ValueError, match=rf"looked in {tmp_path}\); set --data or COUNTINGGRIDS_DATA to it"):
            reproduce.reproduce(name, tmp_path / "out", data=tmp_path, is_quick=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "name='nothing' must be an experiment; use one of station, trees"),
        (["station", "--data", "nowhere"], "nowhere"),
    ],
)
def test_wrong_use_of_the_command_is_an_error(tmp_path, arguments, message, monkeypatch):
    monkeypatch.delenv("COUNTINGGRIDS_DATA", raising=False)
    result = RUN.invoke(app, ["reproduce", *arguments, "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", reproduce.NAMES)
def test_every_experiment_has_a_quick_version(tmp_path_factory, name, data):
    folder = tmp_path_factory.getbasetemp() / "reproduce"
    folder.mkdir(exist_ok=True)
    report = reproduce.reproduce(name, folder, data=data, is_quick=True, log=lambda text: None)
    assert Report.load(folder / f"{name}.json") == report
    assert report.tables
    assert not report.picture or (folder / report.picture).is_file()
    assert "Data: " in report.text()
    for table in report.tables:
        for measure in table.differences:
            assert table.reference in table.values[measure]
            assert set(table.differences[measure]) == set(table.values[measure])
