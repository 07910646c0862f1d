"""Films: what is recorded, how it is cut and aligned, and that the files can be played."""

import re
from pathlib import Path

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Vocabulary
from countinggrids.plot import encode, film, painting, stage, writing

COLORS = Vocabulary.of_colors(np.array([[250, 0, 0], [0, 250, 0], [0, 0, 250], [250, 250, 0]], np.uint8))
WORDS = Vocabulary("words", ("tea", "for", "two", "cups"))


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    return np.vstack([rng.multinomial(30, p, 8) for p in rng.dirichlet(np.full(4, 0.3), 4)])


def recorded(counts, vocabulary=COLORS, every=5, seed=0, grid=(6, 8), window=(3, 4), **options):
    model = plot.watchable(cg.CountingGrid(grid, window, random_state=seed, **options), counts)
    made = plot.Film(model, vocabulary, counts[:3], every=every)
    return made, model.fit(counts, callback=made)


@pytest.fixture(scope="module")
def made(counts):
    return recorded(counts)[0]


def decoded(path):
    """Decode every frame of a film, (frames, height, width, 3)."""
    if path.suffix == ".gif":
        from PIL import Image, ImageSequence

        with Image.open(path) as image:
            return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)])
    import av

    with av.open(path) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def test_every_kth_iteration_is_recorded(counts):
    made, model = recorded(counts, every=7)
    assert [frame.number for frame in made.frames] == list(range(7, model.n_iter_ + 1, 7))


def test_a_frame_shows_the_grid_as_it_was(counts):
    seen = []
    model = plot.watchable(cg.CountingGrid((6, 8), (3, 4), random_state=0), counts)
    made = plot.Film(model, COLORS, counts[:3], every=9)

    def record(now):
        made(now)
        seen.append(np.array(now.pi))

    model.fit(counts, callback=record)
    for frame in made.frames:
        np.testing.assert_array_equal(frame.picture, painting.picture(seen[frame.number - 1], COLORS, 1))


def test_the_last_places_are_where_the_model_puts_the_bags(counts):
    made, model = recorded(counts, every=1)
    q = model.transform(counts[:3]).reshape(3, 6, 8)
    for place, probability, each in zip(made.frames[-1].places, made.frames[-1].probabilities, q, strict=True):
        around = np.ix_(np.arange(place[0] - 1, place[0] + 2) % 6, np.arange(place[1] - 1, place[1] + 2) % 8)
        assert each[around].sum() == pytest.approx(probability, abs=0.05)
    assert made.frames[0].probabilities.max() < 0.5 < made.frames[-1].probabilities.max()


def test_candidates_are_not_recorded_and_a_watchable_model_has_none(counts):
    stages = set()
    model = cg.CountingGrid((24, 32), (12, 16), random_state=0)
    made = plot.Film(model, COLORS)
    model.fit(counts, callback=lambda now: (stages.add(now.stage), made(now))[1])
    assert stages == {"candidates", "learning"}
    assert made.n_seen == model.n_iter_
    stages.clear()
    plot.watchable(model, counts).fit(counts, callback=lambda now: stages.add(now.stage))
    assert stages == {"learning"}


@pytest.mark.parametrize(
    "model",
    [cg.MixtureOfUnigrams(3), cg.SpatialBagOfWords(3, (2, 1)), cg.CountingGrid((6, 8), (3, 4), (1, 1), max_iter=40)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_row_can_be_filmed_and_reaches_its_end(counts, model):
    model = plot.watchable(model.set_params(random_state=0), counts)
    names = Vocabulary("labels", tuple("abcd")[: counts.shape[1] // model._geometry().n_column_sections])
    made = plot.Film(model, names, counts[:2], every=3)
    model.fit(counts, callback=made)
    assert made.frames[-1].beta == 1
    assert made.pictures(64)[-1].shape[2] == 3


def test_a_schedule_of_ones_own_stays(counts):
    model = cg.CountingGrid((6, 8), (3, 4), anneal=(0.1, 1.1, 1.0))
    assert plot.watchable(model, counts).anneal == (0.1, 1.1, 1.0)
    assert plot.watchable(model, counts) is not model


def test_frames_are_thinned_when_there_are_too_many(counts, monkeypatch):
    monkeypatch.setattr(film, "MOST_FRAMES", 20)
    made, model = recorded(counts, every=2)
    assert 10 <= len(made.frames) <= 20
    steps = np.diff([frame.number for frame in made.frames])
    assert made.stride > 2
    assert (steps == made.stride).all()
    assert model.n_iter_ - made.frames[-1].number < made.stride


def test_frames_are_thinned_when_they_take_too_much_memory(counts, monkeypatch):
    monkeypatch.setattr(film, "MEMORY", 1)
    assert len(recorded(counts, every=1)[0].frames) <= 20


@pytest.mark.parametrize("suffix", [".gif", ".mp4", ".webm"])
def test_written_films_can_be_played(made, tmp_path, suffix):
    path = tmp_path / f"film{suffix}"
    n = made.write(path, fps=10, size=200)
    expected = np.stack(list(made.pictures(200)))
    shown = decoded(path)
    assert n == len(expected) == len(made.frames)
    assert len(shown) == n + (0 if suffix == ".gif" else 20)
    assert shown.shape[1:] == expected.shape[1:]
    assert np.abs(shown[n - 1].astype(int) - expected[-1]).mean() < 12
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_gif_holds_its_end(made, tmp_path):
    from PIL import Image

    made.write(tmp_path / "a.gif", fps=10, size=200)
    with Image.open(tmp_path / "a.gif") as image:
        assert image.n_frames == len(made.frames)
        assert image.info["duration"] == 100
        image.seek(image.n_frames - 1)
        assert image.info["duration"] == 2100


def test_an_mp4_plays_anywhere_and_starts_at_once(made, tmp_path):
    import av

    made.write(tmp_path / "a.mp4", size=64)
    with av.open(tmp_path / "a.mp4") as container:
        [stream] = container.streams.video
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
    data = (tmp_path / "a.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_the_same_seed_gives_the_same_pictures(counts):
    one, two, other = (np.stack(list(recorded(counts, seed=seed)[0].pictures(64))[-3:]) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_a_stop_leaves_the_old_film_and_nothing_else(tmp_path):
    def draw(i):
        if i == 7:
            raise KeyboardInterrupt
        return np.full((16, 16, 3), i, np.uint8)

    for suffix in (".gif", ".mp4", ".webm"):
        path = tmp_path / f"a{suffix}"
        path.write_bytes(b"old")
        with pytest.raises(KeyboardInterrupt):
            encode.write(path, film.Reel(range(30), draw))
        assert path.read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.gif", "a.mp4", "a.webm"]


def test_the_film_lingers_where_much_happens():
    still, moving = np.zeros((90, 2, 2)), np.arange(0, 40, 4).reshape(10, 1, 1, 1) * np.ones((10, 2, 2, 1))
    pictures = [*still[..., None], *moving, *(still[..., None] + 39)]
    chosen = film.paced(pictures, 40)
    assert len(chosen) <= 40
    assert chosen[-1] == len(pictures) - 1
    assert len([i for i in chosen if 90 <= i < 100]) >= 8
    assert film.paced(pictures[:5], 40) == [0, 1, 2, 3, 4]


def test_a_wandering_layout_is_followed(rng):
    still = rng.random((12, 16, 3))
    wandering = [np.roll(still, (i // 2, -i), (0, 1)) for i in range(9)]
    for each, shift in zip(wandering, film.drifts(wandering), strict=True):
        np.testing.assert_array_equal(np.roll(each, shift, (0, 1)), wandering[-1])


def test_what_jumps_is_not_followed(rng):
    still = rng.random((12, 16, 3))
    assert not film.drifts([np.roll(still, (5, 5), (0, 1)), still]).any()


def test_faded_pictures_get_more_contrast_within_reason():
    faded = np.array([[[100, 100, 100], [110, 110, 110]]], np.uint8)
    assert stage._raised(faded, 1.4)[0, :, 0].tolist() == [98, 112]
    np.testing.assert_array_equal(stage._raised(faded, 50), stage._raised(faded, stage.LARGEST_GAIN))
    np.testing.assert_array_equal(stage._raised(faded, 0.5), faded)


def test_patches_and_one_axis_and_a_picture_beside(counts, rng):
    patches = Vocabulary.of_patches(rng.integers(0, 256, (4, 6, 6, 3), dtype=np.uint8), 4)
    made, _ = recorded(counts, patches, every=40)
    alone = made.pictures(96)[0]
    beside = made.pictures(96, beside=np.full((30, 30, 3), 9, np.uint8))[0]
    assert alone.shape == (6 * 12 + stage.CAPTION, 8 * 12, 3)
    assert beside.shape == (alone.shape[0], alone.shape[1] + 72 + stage.GAP, 3)
    assert (beside[:72, :72] == 9).all()
    line, _ = recorded(counts, COLORS, every=40, grid=(9,), window=(3,))
    assert line.pictures(90)[0].shape == (10 + stage.CAPTION, 90, 3)


def test_words_grow_and_end_without_overlap(counts):
    made, _ = recorded(counts, WORDS, every=3)
    pictures = list(made.pictures(240))
    ink = [(picture[: -stage.CAPTION] < 100).all(axis=2).mean() for picture in pictures]
    assert ink[0] < ink[-1] / 4
    place = stage.Stage((6, 8), (3, 4), 240, None)
    shifts = np.zeros((len(made.frames), 2), np.int64)
    tracks = made.painter._tracks(made.frames, shifts, place)
    assert {made.painter._name(track.word) for track in tracks} <= set(WORDS.names)
    assert len(tracks) > 4
    free = writing._free(tracks, len(made.frames), place)
    assert (free[-1] > 0.5).all()
    assert all(track.strengths[-1] == pytest.approx(1) for track in tracks if track.strengths[-1] > 0)


def test_only_frequent_words_are_kept_where_there_are_many(rng):
    painter = writing.WordPainter(Vocabulary("words", tuple(map(str, range(2000)))))
    pi = rng.random((4, 4, 2000))
    pi[..., 77] += 5
    kept = painter.record(pi / pi.sum(axis=-1, keepdims=True))
    assert kept.shape == (4, 4, writing.MOST_WORDS)
    assert kept.dtype == np.float16
    assert 77 in painter.kept


MESSAGES = {
    "every": (
        lambda path: plot.Film(cg.CountingGrid(), COLORS, every=0),
        "every=0 must be None or a number of iterations; use for instance every=5.",
    ),
    "three axes": (
        lambda path: plot.Film(cg.CountingGrid((4, 4, 4), 2), COLORS),
        "grid=(4, 4, 4) has 3 axes; expected one or two to film; use fewer axes.",
    ),
    "patches without pictures": (
        lambda path: plot.Film(cg.CountingGrid(), Vocabulary.of_patches(None, 4)),
        "vocabulary of patches has no colors; expected colors, labels, or patches with images; bag again from images.",
    ),
    "nothing recorded": (
        lambda path: plot.Film(cg.CountingGrid(), COLORS).write(path / "a.gif"),
        "the film has no frames after 0 iterations; expected it to be the callback of a fit; "
        "use fit(X, callback=film), and a smaller every.",
    ),
    "unknown format": (
        lambda path: encode.write(Path("a.avi"), []),
        "path='a.avi' must end in .gif, .mp4 or .webm; use for instance film.gif.",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_wrong_use_is_refused(case, tmp_path):
    make, message = MESSAGES[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_encoder_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(ImportError, match=r'^\.mp4 needs PyAV; install it with pip install "countinggrids\[plot\]"'):
        encode.check(tmp_path / "a.mp4")
    encode.check(tmp_path / "a.gif")
