"""Commands whose reader leaves before they have said everything."""

import os
import subprocess
import sys

import pytest

import countinggrids as cg
from countinggrids.features.text import Document


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model and a collection, whose table of places is larger than what a pipe holds."""
    folder = tmp_path_factory.mktemp("pipes")
    documents = [Document(f"tea word{i % 7}", title=f"{i} " + "x" * 400) for i in range(2000)]
    collection = cg.Collection.from_texts(documents)
    collection.save(folder / "a.cg")
    cg.CountingGrid((3, 3), 2, random_state=0, tol=1, anneal=None).fit(collection.counts).save(folder / "a.model")
    return str(folder / "a.model"), str(folder / "a.cg")


def leaving(arguments, n_bytes, is_stderr_too=False):
    """Run a command and read so many bytes of what it prints; give its exit code and what it says on stderr."""
    errors = subprocess.STDOUT if is_stderr_too else subprocess.PIPE
    command = [sys.executable, "-m", "countinggrids.cli", *arguments]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    if n_bytes:
        program.stdout.read(n_bytes)
    program.stdout.close()
    said = b"" if is_stderr_too else program.stderr.read()
    return program.wait(60), said


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["info", "MODEL"],
        ["info", "COLLECTION"],
        ["info", "COLLECTION", "--json"],
        ["locate", "MODEL", "COLLECTION"],
        ["score", "MODEL", "COLLECTION"],
        ["browse", "MODEL", "COLLECTION", "--get", "/map.json"],
    ],
    ids=" ".join,
)
def test_a_command_that_nobody_reads_ends_quietly(files, arguments):
    names = dict(zip(("MODEL", "COLLECTION"), files, strict=True))
    code, said = leaving([names.get(each, each) for each in arguments], 0)
    assert code == 141
    assert said.strip() == b""


@pytest.mark.parametrize("arguments", [["locate"], ["browse", "--get", "/map.json"]], ids=" ".join)
def test_a_command_whose_reader_has_read_enough_ends_quietly(files, arguments):
    code, said = leaving([arguments[0], *files, *arguments[1:]], 10)
    assert (code, said.strip()) == (141, b"")


def test_files_are_written_whoever_listens(files, tmp_path):
    code, _ = leaving(["export", *files, "-o", str(tmp_path / "a.html")], 0, is_stderr_too=True)
    assert code == 141
    assert (tmp_path / "a.html").read_text().endswith("</html>\n")


def test_other_faults_keep_their_exit_code():
    assert leaving(["info", "not-there"], 0)[0] == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["info", "locate"])
def test_a_full_disk_is_reported_in_one_line(files, command):
    with open("/dev/full", "w") as full:
        arguments = [sys.executable, "-m", "countinggrids.cli", command, *files[-1 if command == "info" else 0 :]]
        result = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2
    assert result.stderr.strip() == "Error: stdout could not be written (No space left on device)."
