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
from tests.text import shown_on_a_terminal
from toolkit.cli.main import COMMANDS, help_text, load
from toolkit.cli.output import print_text

if TYPE_CHECKING:
    from typer.core import TyperCommand

NAMES = [entry.name for entry in COMMANDS]
ESCAPE = "\x1b["


# --- help


def test_help_lists_every_command(program: Ctk) -> None:
    text = program("--help").stdout
    for entry in COMMANDS:
        assert f"  {entry.name} " in text
        assert entry.summary in " ".join(text.split())


@pytest.mark.parametrize("name", NAMES)
def test_each_command_explains_itself(ctk: Ctk, name: str) -> None:
    done = ctk(name, "--help")
    assert done.stdout.startswith(f"Usage: ctk {name}")
    assert done.stderr == ""


@pytest.mark.parametrize("entry", COMMANDS, ids=NAMES)
def test_the_summary_is_the_first_line_of_the_help(entry: object) -> None:
    command: TyperCommand = load(entry)  # type: ignore[arg-type]
    assert entry.summary == (command.help or "").split("\n")[0]  # type: ignore[attr-defined]


def test_examples_stay_as_they_are_typed() -> None:
    text = help_text("Do it.\n\n    Two lines\n    of prose.\n\n        ctk do   this\n        ctk do   that\n    ")
    assert text == "Do it.\n\nTwo lines of prose.\n\n\b\n    ctk do   this\n    ctk do   that"
    assert help_text(text) == text


def test_a_group_s_help_is_as_readable_as_a_command_s(program: Ctk) -> None:
    text = program("lab", "--help").stdout
    assert "\n      ctk lab up                   start it\n" in text
    assert "..." not in text.partition("Commands:")[2]
    assert "\n      ctk lab up --name class-2" in program("lab", "up", "--help").stdout


def test_an_option_takes_no_time_to_explain_itself() -> None:
    """Start-up matters: nothing heavy is imported for the help, and no command before it is called."""
    script = "import sys; sys.argv = ['ctk', '--help']\nfrom toolkit.cli.main import main\ntry: main()\n"
    script += "finally: print(sorted({'rich', 'jinja2', 'psutil', 'packaging', 'spython'} & set(sys.modules)), "
    script += "[name for name in sys.modules if name.startswith('toolkit.cli.')])"
    python = PROGRAM.with_name("python")
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] ['toolkit.cli.help', 'toolkit.cli.main']"


def test_version(ctk: Ctk) -> None:
    from toolkit import __version__

    assert ctk("--version").stdout == f"ctk {__version__}\n"


# --- documents


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


def test_a_definition_is_utf8_in_every_locale(program: Ctk) -> None:
    (program.directory / "defs").mkdir()
    (program.directory / "defs/own.toml").write_text(
        'base = "pytorch-2.6"\n[environment]\nGREETING = "今日は"\n', encoding="utf-8"
    )
    assert "GREETING='今日は'\n" in program("def", "own", PYTHONIOENCODING="latin-1").stdout


def test_no_encoding_of_a_terminal_is_worth_a_traceback(program: Ctk) -> None:
    (program.directory / "defs").mkdir()
    (program.directory / "defs/own.toml").write_text('base = "pytorch-2.6"\ndescription = "日本"\n', encoding="utf-8")
    assert "own\tpytorch-2.6\town\t\\u65e5\\u672c\n" in program("list", PYTHONIOENCODING="ascii").stdout
    assert "Error: " in program("def", "日本", status=2, PYTHONIOENCODING="ascii").stderr


def test_a_file_s_name_that_is_no_utf8_keeps_its_bytes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_text("caf\udce9 日本")
    assert capfdbinary.readouterr().out == b"caf\xe9 " + "日本\n".encode()


def test_through_a_pipe_a_table_is_one_row_a_line(ctk: Ctk) -> None:
    rows = [line.split("\t") for line in ctk("bases").stdout.splitlines()]
    assert rows[0] == ["base", "reference", "Python", "framework", "CUDA", "installer"]
    assert {len(row) for row in rows} == {6}


def test_in_a_checkout_the_recipes_are_shipped_ones(ctk: Ctk) -> None:
    from toolkit.support.paths import shipped

    (ctk.directory / "defs").symlink_to(shipped("defs"))
    assert {line.split("\t")[3] for line in ctk("list").stdout.splitlines()[1:]} == {"shipped"}


def test_doctor_writes_a_report_once(ctk: Ctk) -> None:
    assert "Written: ticket.txt" in ctk("doctor", "--report", "ticket.txt", status=None).stdout
    text = (ctk.directory / "ticket.txt").read_text()
    assert text.startswith("ctk ")
    assert str(ctk.directory.parent / "home") not in text
    assert "ticket.txt exists" in ctk("doctor", "--report", "ticket.txt", status=2).stderr
    ctk("doctor", "--report", "ticket.txt", "--force", status=None)


def test_bare_ctk_says_what_is_here_and_what_comes_next(ctk: Ctk) -> None:
    assert "Images here: none" in ctk().stdout
    assert "Next: ctk build keras-bert" in ctk().stdout
    (ctk.directory / "x.sif").touch()
    assert "Next: ctk check-gpu x.sif" in ctk().stdout
    (ctk.directory / "x.sbatch").touch()
    assert "Next: sbatch x.sbatch" in ctk().stdout


def test_list_shows_the_recipes_that_can_be_read_and_names_the_others(ctk: Ctk) -> None:
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/good.toml").write_text('base = "debian-12"\n')
    (ctk.directory / "defs/bad.toml").write_text("broken")
    (ctk.directory / "defs/worse.toml").mkdir()
    listed = ctk("list", status=2)
    assert "good\tdebian-12\town\t" in listed.stdout
    assert "keras-bert\t" in listed.stdout
    assert "✗ bad: " in listed.stderr
    assert "bad.toml is not TOML" in listed.stderr
    assert "✗ worse: " in listed.stderr
    document = json.loads(ctk("list", "--json", status=2).stdout)
    assert [finding["code"] for finding in document["findings"]] == ["broken-recipe"] * 2
    assert "good" in {row["name"] for row in document["recipes"]}


# --- trace


@pytest.mark.parametrize("arguments", [("--trace", "doctor"), ("doctor", "--trace")])
def test_trace_prints_every_program_that_is_run(ctk: Ctk, arguments: tuple[str, str]) -> None:
    done = ctk(*arguments, status=None)
    assert "+ unshare --user --map-root-user true\n" in done.stderr
    assert "+ " not in done.stdout


def test_a_variable_asks_for_the_trace_too_and_json_stays_whole(ctk: Ctk) -> None:
    done = ctk("doctor", "--json", status=None, CTK_TRACE="1")
    assert "+ unshare" in done.stderr
    json.loads(done.stdout)


# --- terminals


def on_a_terminal(ctk: Ctk, *arguments: str, **env: str) -> str:
    """What a user sees: standard output and error are a terminal of 80 columns."""
    environment = {**ctk.environment, "TERM": "xterm-256color", "COLUMNS": "80", **env}
    return shown_on_a_terminal([PROGRAM, *arguments], ctk.directory, environment)


def test_colour_on_a_terminal_and_none_where_it_is_not_wanted(ctk: Ctk) -> None:
    assert ESCAPE in on_a_terminal(ctk, "bases")
    assert ESCAPE not in on_a_terminal(ctk, "list", NO_COLOR="1").replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "38;5" not in on_a_terminal(ctk, "doctor", NO_COLOR="1")


def test_a_terminal_gets_a_next_step_and_a_pipe_does_not(ctk: Ctk) -> None:
    assert "Next: ctk build keras-bert" in on_a_terminal(ctk, "list", NO_COLOR="1")
    assert "Next:" not in ctk("list").stdout


def test_the_next_step_can_be_typed_as_it_stands(ctk: Ctk) -> None:
    (ctk.directory / "-x.sif").touch()
    assert "Next: ctk check-gpu ./-x.sif\n" in ctk().stdout
    (ctk.directory / "my image.sif/.singularity.d").mkdir(parents=True)
    words = ("sbatch", "--image", "my image.sif", "--gpus", "0")
    assert "Next: sbatch my-image.sbatch\n" in on_a_terminal(ctk, *words, "--", "true", NO_COLOR="1")
    assert "Next: sbatch 'a b.sbatch'\n" in on_a_terminal(ctk, *words, "-o", "a b.sbatch", "--", "true", NO_COLOR="1")
    assert "Next: sbatch 'a b.sbatch'\n" in ctk().stdout
    assert "ctk run 'my image.sif' python train.py" in ctk("run", "my image.sif", status=2).stderr


def test_on_a_terminal_a_definition_is_not_wrapped(ctk: Ctk) -> None:
    (ctk.directory / "defs").mkdir()
    words = " ".join(f"word{number}" for number in range(40)) + " :smile: [red]"
    (ctk.directory / "defs/long.toml").write_text(f'base = "pytorch-2.6"\n[environment]\nLONG = "{words}"\n')
    assert f"    export LONG='{words}'\n" in on_a_terminal(ctk, "def", "long")


def test_an_error_on_a_terminal_is_red_and_cannot_repaint_it(ctk: Ctk) -> None:
    shown = on_a_terminal(ctk, "run", "a\x1b[2Jb", "--", "x")
    assert "\x1b[2J" not in shown
    assert r"there is no image a\x1b" in shown


# --- completion


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ctk bu", "build"),
        ("ctk build keras-bert-", "keras-bert-2020"),
        ("ctk def pyt", "pytorch"),
        ("ctk build x --base debian", "debian-12"),
        ("ctk build x --sand", "--sandbox"),
        ("ctk build ow", "own"),
        ("ctk explain build-in", "build-in-progress"),
    ],
)
def test_the_shell_completes_commands_options_recipes_bases_and_codes(program: Ctk, line: str, offered: str) -> None:
    (program.directory / "defs").mkdir()
    (program.directory / "defs/own.toml").write_text("broken")
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = program(_CTK_COMPLETE="complete_bash", **words)
    assert done.stdout.split() == [offered]
    assert done.stderr == ""


def test_a_broken_catalogue_does_not_disturb_the_tab_key(program: Ctk) -> None:
    (program.directory / "defs").mkdir()
    (program.directory / "defs/bases.toml").write_text("broken")
    done = program(_CTK_COMPLETE="complete_bash", COMP_WORDS="ctk build x --base d", COMP_CWORD="4")
    assert (done.stdout.strip(), done.stderr) == ("", "")


# --- how it ends


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
    assert errors == "Error: operating system error: No space left on device\n"


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


def test_summaries_are_sentences() -> None:
    for entry in COMMANDS:
        assert entry.summary.endswith(".")
        assert len(entry.summary) <= 66, "the help is one line a command on 80 columns"
