"""The reproduction of the paper: steps that are kept, reports, and the quick version of every experiment."""

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from countinggrids import reproduce
from countinggrids.cli import app
from countinggrids.items import Items
from countinggrids.reproduce import contenders, contest, places, scales, scenes15, sequences, station, tower, trees
from countinggrids.reproduce.report import Report, Table, page, spread
from countinggrids.reproduce.workshop import Workshop

RUN = CliRunner()


@pytest.fixture
def shop(tmp_path):
    return Workshop(tmp_path, is_quick=True, say=lambda text: None)


def test_a_step_is_done_once_for_each_of_its_settings(shop):
    calls = []
    make = lambda: calls.append(1) or {"n": len(calls)}  # noqa: E731
    assert shop.step("count", {"a": 1}, make) == {"n": 1}
    assert shop.step("count", {"a": 1}, make) == {"n": 1}
    assert shop.step("count", {"a": 2}, make) == {"n": 2}
    shop.is_fresh = True
    assert shop.step("count", {"a": 1}, make) == {"n": 3}
    shop.is_quick, shop.is_fresh = False, False
    assert shop.step("count", {"a": 1}, make) == {"n": 4}


def test_a_step_shows_that_it_goes_on_only_while_it_does(shop):
    shown = []

    @contextmanager
    def working(what):
        shown.append(what)
        try:
            yield
        finally:
            shown.append("over")

    shop.working = working
    assert shop.step("a step", {}, lambda: list(shown)) == ["a step"]
    shop.step("a step", {}, lambda: pytest.fail("it was done before"))
    with pytest.raises(ZeroDivisionError):
        shop.step("another", {}, lambda: 1 // 0)
    assert shown == ["a step", "over", "another", "over"]


def test_a_step_that_fails_leaves_nothing(shop):
    with pytest.raises(ZeroDivisionError):
        shop.step("fails", {}, lambda: 1 // 0)
    assert shop.step("fails", {}, lambda: 5) == 5


def test_a_workshop_tells_at_which_commit_and_for_how_long(shop):
    shop.step("a nap", {}, lambda: time.sleep(0.3))
    assert len(shop.commits) == 1
    assert shop.seconds >= 0.3
    shop.begin()
    assert (shop.commits, shop.seconds) == (set(), 0.0)


def test_a_report_is_read_as_it_was_written(tmp_path):
    report = Report(
        "x", "An x", "Data: none.", [Table("of", ["a", "b"], [["1", "2"]])], ["A note."], "x.png", ["abc"], 95.0,
        n_splits=3,
    )  # fmt: skip
    report.save(tmp_path)
    assert Report.load(tmp_path / "x.json") == report
    assert "`countinggrids reproduce x --splits 3`, at commit abc, 2 minutes" in report.text()
    assert "| a | b |\n| --- | --- |\n| 1 | 2 |" in (tmp_path / "x.md").read_text()
    assert page(tmp_path, ["missing", "x"]).count("## An x") == 1


def test_a_page_keeps_what_the_folder_has_no_report_of(tmp_path):
    for name in ("x", "y"):
        Report(name, f"An {name}", "Data: none.", [], ["A note.\n\n### More of it\n\nAs was found."]).save(tmp_path)
    before = page(tmp_path, ["x", "y"])
    (tmp_path / "x.json").unlink()
    assert page(tmp_path, ["x", "y"], before) == before
    Report("y", "An y", "Data: others.", []).save(tmp_path)
    after = page(tmp_path, ["x", "y"], before)
    assert (after.count("Data: none."), after.count("Data: others."), after.count("## An y")) == (1, 1, 1)
    assert "As was found." in after.partition("## An y")[0]


def test_spread_is_in_percent():
    assert spread([0.5]) == "50.0"
    assert spread([0.5, 0.6]) == "55.0 +- 5.0"


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


def test_a_grid_is_laid_over_the_scene_it_holds(rng):
    labels = rng.integers(0, 5, (6, 8))
    pi = np.full((9, 10, 5), 0.2)
    pi[2:8, 1:9] = np.eye(5)[labels]
    score, laid = trees._laid_over(np.roll(pi, (4, -3), (0, 1)), labels, np.ones((6, 8), bool))
    assert (laid.argmax(-1) == labels).all()
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
    tried = [fold[1] for fold in tower.folds(items)]
    assert sorted(np.concatenate(tried)) == list(range(18))
    assert all(sorted([*learnt, *held]) == list(range(18)) for learnt, held in tower.folds(items))
    assert [list(each[each < 9]) for each in tried] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_components_and_grids_are_chosen_on_the_frames_learnt_from(shop, rng, monkeypatch):
    """One place has frames of two kinds, which together look like those of the other."""
    items = frames([30] * 4).with_columns(label=np.repeat(["near", "far"], 60))
    kinds = np.array([[9, 0, 1, 1], [0, 9, 1, 1], [5, 5, 1, 1], [5, 5, 1, 1]])
    kind = np.where(np.arange(120) < 60, np.arange(120) % 2, 2)
    X = np.hstack([rng.poisson(kinds[kind] * 3.0), np.zeros((120, 15 * 4))])
    shop.is_quick = False
    monkeypatch.setitem(sequences.CHOICES, "mixture", {"n_components": (1, 2)})
    monkeypatch.setitem(sequences.CHOICES, "counting grid 2x1", {"grid": ((4, 4), (6, 6))})
    assert sequences.chosen(shop, "mixture", X, items)[-1].estimator.n_components == 2
    grid = sequences.chosen(shop, "counting grid 2x1", X, items)[-1].estimator
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
    return contenders.Problem(X[is_train], y[is_train], X[~is_train], y[~is_train], is_quick=True)


def test_contenders_beat_chance(rng):
    tried = problem(rng)
    for name, contend in contenders.CONTENDERS.items():
        if "hybrid" not in name:
            predicted, settings = contend(tried)
            assert tried.right(predicted) > 0.6, name
            assert isinstance(settings, str)


@pytest.mark.parametrize(("is_thorough", "n_init"), [(True, 3), (False, 1)])
def test_a_thorough_problem_is_chosen_for_by_as_many_restarts_as_are_averaged(rng, monkeypatch, is_thorough, n_init):
    asked = replace(problem(rng), is_quick=False, powers=(0.7, 1.0), is_thorough=is_thorough)
    restarts, kept = [], []

    class Grids(contenders.CapacitySearch):
        def fit(self, X, y):
            restarts.append(self.n_init)
            kept.append(self.keep)
            return super().fit(X, y)

    class Rivals(contenders.GridSearchCV):
        def fit(self, X, y):
            restarts.append(self.estimator[-1].n_init)
            return super().fit(X, y)

    monkeypatch.setattr(contenders, "CapacitySearch", Grids)
    monkeypatch.setattr(contenders, "GridSearchCV", Rivals)
    contenders.chosen(asked, 1, (4,), (2,), (0.7,))
    contenders.CONTENDERS["mixture"](asked)
    assert restarts == [n_init, n_init]
    assert kept == [1.0 if is_thorough else 0.5]


def test_rows_of_every_size_are_two_cells_high(rng, monkeypatch):
    class Noted:
        def predict(self, X):
            return np.zeros(len(X))

    def learnt(problem, candidates):
        shapes.extend((each.grid, each.window, each.sections) for each in candidates)
        return Noted()

    shapes = []
    monkeypatch.setattr(contenders, "learnt", learnt)
    _, told = contenders.CONTENDERS["counting grid in rows, three sizes averaged"](
        replace(problem(rng), is_quick=False)
    )
    assert shapes == [((12, 12), (4, 4), (2, 1)), ((16, 16), (8, 8), (4, 1)), ((24, 24), (8, 8), (4, 1))]
    assert told == "grids 12x12/4x4 in 2x1, 16x16/8x8 in 4x1, 24x24/8x8 in 4x1, power 0.7"


def test_a_contest_keeps_its_steps_and_sets_the_papers_figures_beside_ours(shop, rng):
    asked = []

    def split(seed):
        asked.append(seed)
        return problem(np.random.default_rng(seed))

    entered = ["mixture", "spatial pyramid kernel 4x4"]
    tables = [contest.contest(shop, "toy", split, {"mixture": 12.3}, {}, entered, range(2))[0] for _ in range(2)]
    assert tables[0] == tables[1]
    assert asked == [0, 1]
    assert tables[0].rows[0][0::2] == ["mixture", "12.3"]
    assert tables[0].rows[1][2] == ""


def test_contests_of_scenes_are_without_those_of_walks(shop, monkeypatch):
    monkeypatch.setattr(contest, "tried", lambda later, contender: {"right": 0.5, "settings": contender})
    table, _ = contest.contest(shop, "toy", lambda seed: None, {}, {}, seeds=[0])
    assert set(contenders.ON_WALKS) < set(contenders.CONTENDERS)
    assert [row[0] for row in table.rows] == [name for name in contenders.CONTENDERS if name not in contenders.ON_WALKS]


def test_features_of_several_kinds_stand_side_by_side_in_each_section(rng):
    words, colours = rng.poisson(2.0, (3, 16, 5)), rng.poisson(2.0, (3, 16, 2))
    both = scales._side_by_side([words.reshape(3, -1), colours.reshape(3, -1)]).reshape(3, 16, 7)
    np.testing.assert_array_equal(both[..., :5], words)
    np.testing.assert_array_equal(both[..., 5:], colours)


def test_a_split_learns_from_as_many_images_of_each_class():
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


def test_scales_tell_stripes_apart(shop, rng, tmp_path):
    items = striped(tmp_path / "pictures", rng, 12)
    divide = partial(scenes15.divided, items["label"].astype(str), 8)
    looked_at = divide(0)[1][1:]
    one, two, three = scales.tables(shop, items, divide, looked_at)
    assert [row[0] for row in one.rows] == [row[0] for row in two.rows] == [scales.PYRAMID, scales.SCORES, scales.BOTH]
    assert [row[0] for row in three.rows] == [*scales.MODELS, *(row[0] for row in one.rows)]
    assert min(float(row[1]) for row in [*one.rows, *two.rows, *three.rows]) > 80
    assert {row[2] for row in three.rows} <= {"0.0", "100.0"}  # only one image had no part in a choice


def test_the_command_writes_report_picture_and_page(tmp_path):
    results = tmp_path / "results.md"
    arguments = ["reproduce", "station", "--quick", "-o", str(tmp_path / "out"), "--results", str(results)]
    first = RUN.invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert (tmp_path / "out" / "station.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads((tmp_path / "out" / "station.json").read_text())
    assert told["is_quick"]
    rows = {row[0]: float(row[1].split()[0]) for row in told["tables"][0]["rows"]}
    assert rows["counting grid"] == max(rows.values())
    assert results.read_text().startswith("# Results\n")
    assert first.stdout.strip() in results.read_text()
    began = time.perf_counter()
    assert RUN.invoke(app, arguments).stdout == first.stdout
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "there is no experiment 'nothing'; wanted one of station, trees"),
        (["scenes15"], "the 15-Scenes set is not here; wanted 15scenes.tar among the data sets; give --data"),
        (["sequences"], "the walks through the tower are not here; wanted ietower.tar and ietower.csv"),
        (["station", "--data", "nowhere"], "nowhere is no folder; wanted that of the data sets"),
    ],
)
def test_wrong_use_is_told(tmp_path, arguments, message, monkeypatch):
    monkeypatch.delenv("COUNTINGGRIDS_DATA", raising=False)
    result = RUN.invoke(app, ["reproduce", *arguments, "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("name", [name for name in reproduce.NAMES if name != "station"])
def test_every_experiment_has_a_quick_version(tmp_path_factory, name, data):
    folder = tmp_path_factory.getbasetemp() / "reproduce"
    result = RUN.invoke(app, ["reproduce", name, "--quick", "-o", str(folder), "--data", str(data)])
    assert result.exit_code == 0, result.output
    report = Report.load(folder / f"{name}.json")
    assert report.tables
    assert not report.picture or (folder / report.picture).is_file()
    assert "Data: " in report.text()
