"""All benchmarks, with one entry: python benchmarks run [NAME ...] | list | compare COMMIT

run writes a table and a JSON file for each benchmark into results/benchmarks, and adds the run to the history, one JSON
file for each benchmark in benchmarks/history. compare times whole fits of this commit and of another one, in turns.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
HISTORY = HERE / "history"
NOT_BENCHMARKS = {"__main__", "common", "corpora"}
TABLES = "COUNTINGGRIDS_BENCHMARK_TABLES"


def names():
    """List the benchmarks."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_BENCHMARKS)


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def run(name, output):
    """Run a benchmark; write its tables, add them to the history, and return whether it succeeded."""
    print(f"== {name}", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    tables = output / f"{name}.tables"
    tables.unlink(missing_ok=True)
    began, clock = datetime.now(UTC), time.monotonic()
    code = subprocess.run([sys.executable, HERE / f"{name}.py"], env=os.environ | {TABLES: str(tables)}).returncode
    lines = tables.read_text().splitlines() if tables.exists() else []
    tables.unlink(missing_ok=True)
    result = {
        "benchmark": name,
        "date": began.isoformat(timespec="seconds"),
        "commit": git("describe", "--always", "--dirty"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "seconds": round(time.monotonic() - clock, 1),
        "exit_code": code,
        "tables": [json.loads(line) for line in lines],
    }
    (output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    if code == 0 and lines:
        remember(result, HISTORY / f"{name}.json")
    return code == 0


def remember(result, path):
    """Add a run to the history of its benchmark."""
    path.parent.mkdir(exist_ok=True)
    runs = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([*runs, result], indent=1) + "\n")


def compare(commit, alert, rounds):
    """Time whole fits of another commit and of this one, in turns; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "other"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", tree, commit], cwd=ROOT, check=True)
        try:
            for each in (tree, ROOT):
                if (each / "tools" / "build_kernels.py").is_file():
                    subprocess.run([sys.executable, each / "tools" / "build_kernels.py"], check=True)
            command = [sys.executable, ROOT / "tools" / "compare_speed.py", tree / "src", ROOT / "src"]
            return subprocess.run([*command, "--alert", str(alert), "--rounds", str(rounds)]).returncode
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run benchmarks, all by default")
    running.add_argument("names", nargs="*", help="names of benchmarks")
    running.add_argument("--output", type=Path, default=ROOT / "results" / "benchmarks")
    commands.add_parser("list", help="list the benchmarks")
    comparing = commands.add_parser("compare", help="time whole fits against another commit")
    comparing.add_argument("commit")
    comparing.add_argument("--alert", type=float, default=1.25, help="largest ratio of the times, new to old")
    comparing.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.command == "list":
        print("\n".join(names()))
        return 0
    if options.command == "compare":
        return compare(options.commit, options.alert, options.rounds)
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"unknown benchmarks {unknown}; use some of {', '.join(names())}")
    done = [run(name, options.output) for name in options.names or names()]
    return int(not all(done))


if __name__ == "__main__":
    sys.exit(main())
