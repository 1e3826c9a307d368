"""What the benchmarks' page is made of; the measuring itself is for `make bench`."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import run
from benchmarks.measure import CHECKOUT, interleaved
from benchmarks.section import Section, Table, Target

if TYPE_CHECKING:
    from pathlib import Path


def test_every_benchmark_is_found_without_a_list() -> None:
    assert "startup" in run.find()
    assert not {"run", "section", "measure"} & set(run.find())


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["coffee"]) == 2
    assert "startup" in capsys.readouterr().err


def test_the_page_says_which_targets_were_missed() -> None:
    table = Table("Times", ("command", "ms"), (("`a | b`", "7"),))
    section = Section("Title", "Words.", (table,), (Target("fast", True), Target("small", False)), ("ctk 1",))
    page = run.document([section])
    assert "| `a \\| b` | 7 |" in page
    assert "- met: fast" in page
    assert "- **missed**: small" in page
    assert page.endswith("Versions: ctk 1.\n")


@pytest.mark.parametrize("page", ["README.md", "README.ja.md"])
@pytest.mark.parametrize("title", ["Packages that change the framework", "Packages that import"])
def test_the_readme_shows_the_counts_of_the_last_run(page: str, title: str) -> None:
    results = (CHECKOUT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    table = results.partition(f"**{title}**")[2].split("\n\n")[1]
    rows = "\n".join(table.splitlines()[1:])
    assert rows.count("\n") == 4
    assert f"\n{rows}\n" in (CHECKOUT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("README.md", "take {0:.0f} s with `ctk build --flat`, and {2:.0f} s with pip and plain `apptainer build`"),
        ("README.ja.md", "`ctk build --flat` では {0:.0f} 秒、 pip と通常の `apptainer build` では {2:.0f} 秒"),
        ("docs/manual.md", "{0:.0f} s instead of {1:.0f} s"),
    ],
)
def test_pages_state_the_build_times_of_the_last_run(page: str, sentence: str) -> None:
    results = (CHECKOUT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    building = results.partition("\n## Building\n")[2].partition("\n## ")[0]
    medians = [float(row.split("|")[2]) for row in re.findall(r"^\| `.*$", building, re.MULTILINE)]
    text = " ".join((CHECKOUT / page).read_text(encoding="utf-8").split())
    assert sentence.format(*medians) in text


def test_commands_take_turns_and_each_round_begins_with_another(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = {name: ["sh", "-c", f"echo {name} >> {log}"] for name in "abc"}
    times = interleaved(commands, rounds=3)
    assert log.read_text().split() == [*"cab", *"abc", *"bca", *"cab"]
    assert all(len(timing.seconds) == 3 and timing.fastest <= timing.median for timing in times.values())


def test_a_command_that_fails_ends_the_run() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        interleaved({"bad": [sys.executable, "-c", "raise SystemExit(3)"]}, rounds=1)
