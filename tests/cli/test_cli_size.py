"""`fit` says how large a model becomes, keeps the most frequent words, and rounds probabilities."""

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app, model_size

RUN = CliRunner()
TEXTS = ["tea tea tea cups milk", "tea cups cups rare", "train train track", "train tea track track"] * 5
FIT = ["fit", "--grid", "6x6", "--window", "2x2", "--quiet"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cg.Collection.from_texts(TEXTS).save("bags.cg")
    return tmp_path


def run(*given):
    return RUN.invoke(app, list(given))


def test_the_most_frequent_words_are_kept_and_the_vocabulary_follows(folder):
    done = run(*FIT, "bags.cg", "-o", "model.cg", "--max-words", "4", "--collection", "few.cg")
    assert done.exit_code == 0, done.output
    assert "4 of 6 words kept" in done.stderr
    few, model = cg.Collection.load(folder / "few.cg"), cg.load(folder / "model.cg")
    assert few.vocabulary.names == ("cups", "tea", "track", "train")
    assert model.pi_.shape == (6, 6, 4)
    assert model.locate(few).shape == (20, 2)
    np.testing.assert_array_equal(few.bag(["tea milk cups tea"]).toarray(), [[1, 2, 0, 0]])
    assert run("locate", "model.cg", "few.cg").exit_code == 0
    refused = run("locate", "model.cg", "bags.cg")
    assert refused.exit_code == 2
    assert "must have the features of the model" in refused.stderr


def test_columns_of_plain_counts_are_kept_too(folder):
    sp.save_npz("counts.npz", sp.csr_matrix(np.array([[1, 9, 0, 5], [0, 3, 1, 4]] * 5, "f4")))
    done = run(*FIT, "counts.npz", "-o", "model.cg", "--max-words", "2", "--collection", "few.cg")
    assert done.exit_code == 0, done.output
    few = cg.Collection.load(folder / "few.cg")
    assert few.vocabulary.names == ("feature 1", "feature 3")
    np.testing.assert_array_equal(few.counts.toarray()[:2], [[9, 5], [3, 4]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--max-words", "2"], "needs --collection FILE"),
        (["--collection", "few.cg"], "use it with --max-words"),
        (["--max-words", "2", "--collection", "bags.cg"], "are the same file"),
        (["--max-words", "2", "--collection", "few.cg", "--scheduler", "tcp://127.0.0.1:1"], "not be used with"),
        (["--max-words", "2", "--collection", "there.cg"], "exists; use another name"),
    ],
)
def test_options_that_do_not_belong_together_are_refused_before_any_work(folder, given, message):
    (folder / "there.cg").write_text("")
    done = run(*FIT, "bags.cg", "-o", "model.cg", *given)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (folder / "model.cg").exists()


def test_taking_all_features_or_none(folder):
    collection = cg.Collection.load(folder / "bags.cg")
    assert collection.take_frequent(6) is collection
    with pytest.raises(ValueError, match="n_features=0 must be at least 1"):
        collection.take_frequent(0)


def test_a_compact_model_is_written_and_read(folder):
    for name, more in (("whole.cg", []), ("compact.cg", ["--compact"])):
        assert run(*FIT, "bags.cg", "-o", name, *more).exit_code == 0
    whole, compact = cg.load(folder / "whole.cg"), cg.load(folder / "compact.cg")
    np.testing.assert_allclose(compact.pi_, whole.pi_, rtol=0.1)
    assert (compact.pi_ != whole.pi_).any()


def test_the_size_of_a_large_model_is_said_with_what_makes_it_smaller(capsys, monkeypatch):
    counts = sp.csr_array((10, 4000), dtype=np.float32)
    model = cg.CountingGrid((64, 64), 8)
    model_size.log_size(counts, model, is_compact=False)
    assert "about 62 MB; use --max-words or --compact" in capsys.readouterr().err
    model_size.log_size(counts, model, is_compact=True)
    assert capsys.readouterr().err == ""
    model_size.log_size(sp.csr_array((10, 20000), dtype=np.float32), model, is_compact=True)
    assert "about 78 MB; use --max-words for" in capsys.readouterr().err
    model_size.log_size(counts[:, :100], model, is_compact=False)
    assert capsys.readouterr().err == ""


def test_fit_says_it_before_the_first_iteration_unless_quiet(folder, monkeypatch):
    monkeypatch.setattr(model_size, "LARGE", 1)
    loud = [part for part in FIT if part != "--quiet"]
    done = run(*loud, "bags.cg", "-o", "a.cg")
    assert done.stderr.index("the file of the model") < done.stderr.index("to fit")
    assert "the file of the model" not in run(*FIT, "bags.cg", "-o", "b.cg").stderr
