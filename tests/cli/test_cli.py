import json

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app

RUN = CliRunner()
SMALL = ["--grid", "6x6", "--window", "2x2", "--seed", "0", "--max-iter", "200"]


@pytest.fixture
def counts(tmp_path):
    X = sp.csr_array(np.random.default_rng(0).poisson(1.5, (20, 8)))
    sp.save_npz(tmp_path / "counts.npz", X)
    np.save(tmp_path / "counts.npy", X.toarray())
    return tmp_path / "counts.npz"


@pytest.fixture
def model(counts):
    path = counts.with_name("model.safetensors")
    assert RUN.invoke(app, ["fit", str(counts), "-o", str(path), *SMALL]).exit_code == 0
    return path


def test_fit_writes_a_model_that_the_library_loads(counts, model):
    loaded = cg.load(model)
    assert (loaded.grid, loaded.window) == ((6, 6), (2, 2))
    again = cg.CountingGrid((6, 6), (2, 2), random_state=0, max_iter=200).fit(sp.load_npz(counts))
    np.testing.assert_array_equal(loaded.pi_, again.pi_)


def test_fit_knows_elastic_grids(counts):
    path = counts.with_name("elastic.safetensors")
    options = ["--grid", "6x6", "--window", "4x4", "--sections", "2x2", "--model", "elastic", "--slack", "1x0"]
    assert RUN.invoke(app, ["fit", str(counts), "-o", str(path), *options]).exit_code == 0
    assert cg.load(path).slip_.shape == (4, 3, 1)
    for wrong, message in (
        (["--slack", "2"], "use --model elastic"),
        (["--model", "rubber"], "--model=rubber must be"),
    ):
        refused = RUN.invoke(app, ["fit", str(counts), "-o", str(counts.with_name("other")), *wrong])
        assert refused.exit_code == 2
        assert message in refused.stderr


def test_dense_and_sparse_files_give_the_same_places(counts, model):
    places = [
        RUN.invoke(app, ["locate", str(model), str(path)]).stdout for path in (counts, counts.with_suffix(".npy"))
    ]
    assert places[0] == places[1]
    assert places[0].splitlines()[0].split() == [str(n) for n in cg.load(model).locate(sp.load_npz(counts))[0]]


def test_json_is_json_and_alone_on_stdout(counts, model):
    for command in (["info", str(model)], ["locate", str(model), str(counts)], ["score", str(model), str(counts)]):
        json.loads(RUN.invoke(app, [*command, "--json"]).stdout)
    facts = json.loads(RUN.invoke(app, ["info", str(model), "--json"]).stdout)
    assert facts["class"] == "CountingGrid"
    assert facts["grid"] == [6, 6]


def test_an_existing_output_is_kept_unless_forced(counts, model):
    before = model.read_bytes()
    refused = RUN.invoke(app, ["fit", str(counts), "-o", str(model), *SMALL])
    assert refused.exit_code == 2
    assert "exists; use another name" in refused.stderr
    assert model.read_bytes() == before
    assert RUN.invoke(app, ["fit", str(counts), "-o", str(model), "--force", *SMALL]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "six"], "--grid=six must be integers joined by x; use for instance --grid=8x8."),
        (["--grid", "4x4", "--window", "8x8"], "window=(8, 8) must fit into grid=(4, 4)"),
        (["--window", "8x8", "--sections", "3x3"], "sections=(3, 3) must divide window=(8, 8)"),
    ],
)
def test_wrong_use_exits_with_two_and_leaves_nothing(counts, arguments, message):
    output = counts.with_name("new.safetensors")
    result = RUN.invoke(app, ["fit", str(counts), "-o", str(output), *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not output.exists()


def test_files_that_hold_no_counts_are_named(tmp_path, model):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"nothing")
    result = RUN.invoke(app, ["locate", str(model), str(broken)])
    assert result.exit_code == 2
    assert "is no table of counts" in result.stderr


def test_pickled_arrays_are_refused(tmp_path, model):
    path = tmp_path / "pickled.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert RUN.invoke(app, ["locate", str(model), str(path)]).exit_code == 2


def test_the_version_is_printed():
    assert RUN.invoke(app, ["--version"]).stdout.strip() == cg.__version__


def test_the_demo_puts_the_windows_back_and_draws_them(tmp_path):
    report = json.loads(RUN.invoke(app, ["demo", "-o", str(tmp_path / "demo"), "--json"]).stdout)
    assert report["put_back"] >= 45
    assert (tmp_path / "demo" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert cg.load(report["model"]).capacity == pytest.approx(38 * 53 / 256)


def test_fit_knows_the_componential_grid(tmp_path, counts):
    path = tmp_path / "model"
    small = ["--grid", "6x6", "--window", "2x2"]
    fitted = RUN.invoke(app, ["fit", str(counts), "-o", str(path), "--model", "componential", *small])
    assert fitted.exit_code == 0
    assert type(cg.load(path)) is cg.ComponentialGrid
    refused = ["fit", str(counts), "-o", str(path), "--model", "componential", "--force", "--paint", "2x2", *small]
    assert RUN.invoke(app, refused).exit_code == 2
