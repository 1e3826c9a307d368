"""`ctk` as a whole: its help, its documents, its colours, its completion, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import PROGRAM, Ctk
from toolkit.cli.main import COMMANDS
from toolkit.cli.output import print_text

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow


NAMES = [entry.name for entry in COMMANDS]
ESCAPE = "\x1b["


def test_version(ctk: Ctk) -> None:
    from toolkit import __version__

    assert ctk("--version").stdout == f"ctk {__version__}\n"


def test_json_is_one_document_and_nothing_else(ctk: Ctk) -> None:
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/own.toml").write_text('base = "debian-12"\ndescription = "日本"\n', encoding="utf-8")
    for directory in ("one", "two"):
        (ctk.directory / directory / "etc").mkdir(parents=True)
        (ctk.directory / directory / "usr").mkdir()
        (ctk.directory / directory / ".singularity.d").mkdir()
    schemas = {
        ("list",): "ctk.recipes/1",
        ("bases",): "ctk.bases/1",
        ("def", "own"): "ctk.definition/1",
        ("diff", "one", "two"): "ctk.diff/1",
        ("doctor",): "ctk.doctor/1",
    }
    for arguments, schema in schemas.items():
        done = ctk(*arguments, "--json", status=None)
        document = json.loads(done.stdout)
        assert next(iter(document)) == "schema"
        assert document["schema"] == schema
        assert isinstance(document["findings"], list)
        assert done.stdout.isascii(), "valid in every locale"
        for finding in document["findings"]:
            assert set(finding) == {"code", "severity", "message", "fix"}
    recipes = {row["name"]: row for row in json.loads(ctk("list", "--json").stdout)["recipes"]}
    assert (recipes["own"]["description"], recipes["own"]["from"]) == ("日本", "own")
    assert recipes["pytorch"]["from"] == "shipped"


def test_no_encoding_of_a_terminal_is_worth_a_traceback(program: Ctk) -> None:
    (program.directory / "defs").mkdir()
    (program.directory / "defs/own.toml").write_text('base = "pytorch-2.6"\ndescription = "日本"\n', encoding="utf-8")
    assert "own\tpytorch-2.6\town\t\\u65e5\\u672c\n" in program("list", PYTHONIOENCODING="ascii").stdout
    assert "Error: " in program("def", "日本", status=2, PYTHONIOENCODING="ascii").stderr


def test_a_file_s_name_that_is_no_utf8_keeps_its_bytes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_text("caf\udce9 日本")
    assert capfdbinary.readouterr().out == b"caf\xe9 " + "日本\n".encode()


@pytest.mark.parametrize("arguments", [("--trace", "doctor"), ("doctor", "--trace")])
def test_trace_prints_every_program_that_is_run(ctk: Ctk, arguments: tuple[str, str]) -> None:
    done = ctk(*arguments, status=None)
    assert "+ unshare --user --map-root-user true\n" in done.stderr
    assert "+ " not in done.stdout


def test_a_variable_asks_for_the_trace_too_and_json_stays_whole(ctk: Ctk) -> None:
    done = ctk("doctor", "--json", status=None, CTK_TRACE="1")
    assert "+ unshare" in done.stderr
    json.loads(done.stdout)


def test_colour_on_a_terminal_and_none_where_it_is_not_wanted(ctk: Ctk, on_a_terminal: Callable[..., str]) -> None:
    assert ESCAPE in on_a_terminal("bases")
    assert ESCAPE not in on_a_terminal("list", NO_COLOR="1").replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "38;5" not in on_a_terminal("doctor", NO_COLOR="1")


def test_an_error_on_a_terminal_is_red_and_cannot_repaint_it(ctk: Ctk, on_a_terminal: Callable[..., str]) -> None:
    shown = on_a_terminal("run", "a\x1b[2Jb", "--", "x")
    assert "\x1b[2J" not in shown
    assert r"there is no image a\x1b" in shown


def written_to(ctk: Ctk, output: int, *arguments: str) -> tuple[int, str]:
    """The exit status and the errors of a `ctk` that writes where it cannot."""
    argv, environment = [PROGRAM, *arguments], ctk.environment
    done = subprocess.run(argv, cwd=ctk.directory, env=environment, stdout=output, stderr=subprocess.PIPE, check=False)
    errors = done.stderr.decode()
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
    return done.returncode, errors


@pytest.mark.parametrize("line", ["list", "list --json", "build none --json"])
def test_a_reader_that_goes_away_is_no_error(ctk: Ctk, line: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    status, _ = written_to(ctk, writer, *line.split())
    os.close(writer)
    assert status == 128 + signal.SIGPIPE


@pytest.mark.parametrize("line", ["list", "list --json", "bases"])
def test_a_full_disk_is_the_hosts_trouble(ctk: Ctk, line: str) -> None:
    with Path("/dev/full").open("w") as full:
        status, errors = written_to(ctk, full.fileno(), *line.split())
    assert status == 3
    assert errors.startswith("Error: No space left on device: a disk or a quota is full, one of: /")
    assert str(ctk.directory) in errors
    assert "[disk-full]" in errors


@pytest.mark.parametrize(
    ("line", "status"),
    [("build none", 2), ("build none --json", 2), ("cache list", 0), ("lab", 2), ("--trace list", 0)],
)
def test_a_full_disk_behind_standard_error_ends_no_command(ctk: Ctk, line: str, status: int) -> None:
    with Path("/dev/full").open("w") as full:
        argv = [PROGRAM, *line.split()]
        done = subprocess.run(argv, cwd=ctk.directory, env=ctk.environment, stdout=subprocess.PIPE, stderr=full)
    assert done.returncode == status
    assert done.stdout == ctk(*line.split(), status=status).stdout.encode()


@pytest.mark.parametrize("variables", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_a_reader_of_standard_error_that_goes_away_ends_ctk(ctk: Ctk, variables: dict[str, str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**ctk.environment, **variables}
    done = subprocess.run([PROGRAM, "build", "none"], cwd=ctk.directory, env=environment, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("closing", "line", "status"),
    [(">&-", "list", 0), ("2>&-", "build none --json", 2), (">&- 2>&-", "bases", 0), ("<&- >&- 2>&-", "list", 0)],
)
def test_a_closed_stream_is_as_dev_null(ctk: Ctk, closing: str, line: str, status: int) -> None:
    script = f'exec "$@" {closing}'
    argv = ["sh", "-c", script, "sh", PROGRAM, *line.split()]
    done = subprocess.run(argv, cwd=ctk.directory, env=ctk.environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    assert (done.stdout == "") == (">&-" in closing.split())


def test_a_closed_stream_is_one_for_the_programs_that_ctk_runs_too(ctk: Ctk) -> None:
    said = "import os; os.system('echo said; echo said >&2')"
    code = f"import sys, toolkit.__main__ as main; main._open_closed_streams(); {said}"
    argv = ["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM.with_name("python"), "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "said\n")


def slow_runtime(directory: Path) -> dict[str, str]:
    """A runtime that takes a minute to say its version."""
    (directory / "bin").mkdir()
    (directory / "bin/apptainer").write_text("#!/bin/sh\necho started > started\nexec sleep 60\n")
    (directory / "bin/apptainer").chmod(0o755)
    return {"PATH": f"{directory}/bin:{os.environ['PATH']}"}


def interrupted(ctk: Ctk, number: signal.Signals, *under: str) -> subprocess.Popen[str]:
    """A `ctk doctor` that got a signal while it waited for another program."""
    environment = {**ctk.environment, **slow_runtime(ctk.directory)}
    child = subprocess.Popen(
        [*under, PROGRAM, "doctor"],
        cwd=ctk.directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 10
    while not (ctk.directory / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(number)
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_is_said_in_a_word(ctk: Ctk, number: signal.Signals) -> None:
    child = interrupted(ctk, number)
    _, errors = child.communicate(timeout=10)
    assert (child.returncode, errors) == (130, "Interrupted.\n")


def test_under_nohup_a_closed_terminal_means_nothing(ctk: Ctk) -> None:
    child = interrupted(ctk, signal.SIGHUP, "nohup")
    time.sleep(0.3)
    assert child.poll() is None
    child.terminate()
    child.communicate(timeout=10)
