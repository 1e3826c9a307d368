"""Whatever text comes from others, nothing that ctk prints controls a terminal or passes for ctk's own words."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import Ctk
from tests.examples import examples
from tests.inventory.making import distribution, fill, python_files
from tests.text import ATTACKS, HOSTILE, is_harmless, without_own_codes
from toolkit.cli import output
from toolkit.support.errors import CheckFailed, CtkError, MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import run, trace_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Ctk

pytestmark = pytest.mark.slow


MANY = examples(60)
EVERYTHING = "".join(ATTACKS)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def captured(kind: type[io.StringIO]) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Standard output and error as `kind`."""
    before = sys.stdout, sys.stderr, os.environ.get("TERM")
    streams = kind(), kind()
    sys.stdout, sys.stderr = streams
    os.environ["TERM"] = "xterm"
    output.console.cache_clear()
    try:
        yield streams
    finally:
        sys.stdout, sys.stderr = before[:2]
        os.environ.pop("TERM")
        if before[2] is not None:
            os.environ["TERM"] = before[2]
        output.console.cache_clear()


def test_pairs_are_lines_that_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [
        ("base", "cuda"),
        ("digest", f"sha256:{'0123456789abcdef' * 4}"),
        ("org.label-schema.usage.x.y", "1 2" * 40),
    ]
    with monkeypatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setenv("NO_COLOR", "1")
        with captured(Terminal) as (shown, _):
            output.print_pairs(("what", "value"), pairs, title="Labels:")
    lines = without_own_codes(shown.getvalue()).splitlines()
    assert lines == ["Labels:", *(f"{name}: {value}" for name, value in pairs)]
    with captured(io.StringIO) as (piped, _):
        output.print_pairs(("what", "value"), pairs, title="Labels:")
    assert piped.getvalue().splitlines() == ["what\tvalue", *(f"{name}\t{value}" for name, value in pairs)]


def trace(text: str) -> None:
    output.start_trace()
    try:
        run(["true", text.replace("\0", "").encode(errors="replace").decode()])
    finally:
        trace_with(None)


def fail(text: str) -> None:
    error = ProgramFailed(text, fix=text, last_lines=(text,), log=Path("build.log" if "://" in text else text))
    output.show_error(error)
    output.show_error(CheckFailed(text, code="wrong-file"), json=True)


def step(text: str) -> None:
    with output.live_steps(text) as on_step:
        on_step(text)


ONE_OF_EACH = {
    Severity.ERROR: "no-lock",
    Severity.WARNING: "no-fuse",
    Severity.INFO: "no-slurm",
    Severity.OK: "clock",
}
PRINTERS: list[Callable[[str], object]] = [
    output.say,
    lambda text: output.say(text, stderr=True, style="green"),
    lambda text: output.print_findings(Finding(code, severity, text, text) for severity, code in ONE_OF_EACH.items()),
    lambda text: output.print_table((text, "b"), [(text, text)]),
    lambda text: output.print_table(("a", text), [(text, text)], title="Nodes"),
    lambda text: output.print_pairs(("a", text), [(text, text)], title=text),
    lambda text: output.suggest(["ctk", text], text),
    lambda text: output.print_json("ctk.x/1", {"value": text}, [Finding("clock", Severity.OK, text, text)]),
    trace,
    fail,
]


@MANY
@given(st.sampled_from(PRINTERS), st.sampled_from([io.StringIO, Terminal]), HOSTILE)
def test_nothing_printed_controls_a_terminal(
    printer: Callable[[str], object], kind: type[io.StringIO], text: str
) -> None:
    with captured(kind) as streams:
        printer(text)
    for stream in streams:
        shown = without_own_codes(stream.getvalue())
        assert is_harmless(shown, keep="\n\t"), repr(shown)
        assert not re.search("^(Verdict|Error: none)", shown.replace("Error: \nE", ""), re.MULTILINE), shown


@MANY
@given(HOSTILE, st.sampled_from([io.StringIO, Terminal]))
def test_a_step_is_one_line(text: str, kind: type[io.StringIO]) -> None:
    with captured(kind) as (_, errors):
        step(text)
    shown = errors.getvalue()
    assert is_harmless(without_own_codes(shown), keep="\n\t"), repr(shown)
    assert kind is Terminal or not shown


@MANY
@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=3))
def test_through_a_pipe_a_row_is_a_line_with_its_cells(rows: list[tuple[str, str]]) -> None:
    with captured(io.StringIO) as (shown, _):
        output.print_table(("a", "b"), rows)
    lines = shown.getvalue().split("\n")
    assert (len(lines), {line.count("\t") for line in lines[:-1]}) == (len(rows) + 2, {1})


def test_a_text_for_a_file_is_exact_in_a_pipe_and_printable_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "a\tb\x1b[2J\u202e\n日本\n"
    output.print_text(text)
    assert capsys.readouterr().out == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.print_text(text)
    assert capsys.readouterr().out == "a\tb\\x1b[2J\\u202e\n日本\n"


def test_lines_of_an_error_that_follow_are_indented(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_error(CheckFailed("a\nVerdict: gpu-ready", fix="b\nError: c"))
    assert capsys.readouterr().err == "Error: a\n  Verdict: gpu-ready\nb\n  Error: c\n"


def test_problems_end_with_their_code(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_findings([Finding(code, severity, "It.", "Do it.") for severity, code in ONE_OF_EACH.items()])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("It.")[2] for line in lines[::2]] == [
        f" [{code}]" if severity in (Severity.ERROR, Severity.WARNING) else "" for severity, code in ONE_OF_EACH.items()
    ]
    assert set(lines[1::2]) == {"    Do it."}


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CheckFailed("The lock is out of date.", code="stale-lock"), "Error: The lock is out of date. [stale-lock]"),
        (CheckFailed("No."), "Error: No."),
        (MissingOnHost("No sbatch."), "Error: No sbatch."),
        (WrongInput("No such key.", code="wrong-file"), "Error: No such key."),
    ],
)
def test_errors_end_with_their_code_if_it_tells_more(
    error: CtkError, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output.show_error(error)
    assert capsys.readouterr().err == f"{line}\n"


def test_credentials_are_hidden_wherever_they_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    address = "https://ann:S3CRET@index.example/simple?sig=S3CRET"
    for printer in PRINTERS[:-3]:
        printer(address)
    trace(address)
    fail(address)
    step(address)
    output.print_json("ctk.x/1", {}, [Finding("clock", Severity.OK, address, address)])
    shown = capsys.readouterr()
    assert "S3CRET" not in shown.out + shown.err
    assert "index.example/simple" in shown.out
    assert "index.example/simple" in shown.err


# --- whole commands


@pytest.fixture
def hostile(ctk: Ctk) -> Ctk:
    """A sandbox, recipes and bases whose every name and value attacks the terminal."""
    site = "usr/local/lib/python3.11/site-packages"
    record = f"Metadata-Version: 2.1\nName: bad{EVERYTHING.replace(chr(10), '')}\nVersion: 1{EVERYTHING}\n"
    for directory in ("one", "two\x1b[2J[/]\u202e"):
        fill(
            ctk.directory / directory,
            {
                **python_files(),
                **distribution("tensorflow", "2.15.0", site),
                f"{site}/bad-1.dist-info/METADATA": record.encode(errors="surrogateescape"),
                f"{site}/bad-1.dist-info/RECORD": b"",
                "etc/os-release": 'ID="evil\x1b[2J"\nVERSION_ID="\x9b7m"\n',
                ".singularity.d/env/10-x.sh": "export LD_LIBRARY_PATH='/x\x1b[2J'\nexport PYTHONPATH='/\x9b2J'\n",
                f"{site}/\x1b[2J-{len(directory)}.dist-info/METADATA": "Name: e\x1b[2J\nVersion: 1\n",
            },
        )
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/bases.toml").write_text(
        '[evil]\nbootstrap = "localimage"\nreference = "x.sif"\ndescription = "\\u202egpj."\n'
    )
    (ctk.directory / "defs/mine.toml").write_text('base = "debian-12"\ndescription = "\\u202e\\u2066 [/] 日本　語"\n')
    (ctk.directory / "x\x1b[2J.sif").touch()
    return ctk


COMMANDS = [
    ("audit", "one"),
    ("audit", "one", "--packages"),
    ("audit", "two\x1b[2J[/]\u202e", "--packages"),
    ("diff", "one", "two\x1b[2J[/]\u202e"),
    ("list",),
    ("bases",),
    ("def", "mine"),
    (),
    ("explain", "no\x1b[2Jne"),
    ("why", "pa\x1b[2J", "mi\x9bne"),
    ("build", "\x1b]52;c;aaaa\x07"),
    ("build", "mine", "--base", "\u202egpj.exe"),
    ("audit", "one", "--dri\x1b[2Jver"),
    ("aud\x1b[2Jit",),
    ("audit", "one", "--allow", "\x1b[2J\x9b7m"),
    ("audit", "one", "more\x1b[2J"),
    ("lab", "st\x1b[2Jatus"),
    ("sbatch", "-J", "\x1b[2J", "--", "x"),
    ("check-gpu", "x\x1b[2J.sif"),
    ("--trace", "build", "mine", "--dry-run"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: ascii(" ".join(words)))
def test_no_hostile_name_reaches_the_terminal_raw(
    hostile: Ctk, on_a_terminal: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    done = hostile(*arguments, status=None)
    assert is_harmless(done.stdout + done.stderr, keep="\n\t"), repr(done.stdout + done.stderr)
    shown = without_own_codes(on_a_terminal(*arguments))
    assert is_harmless(shown, keep="\n\t"), repr(shown)
    assert "\x1b" not in shown


def test_the_values_are_shown_all_the_same(hostile: Ctk) -> None:
    shown = hostile("audit", "one", "--packages", status=None).stdout
    assert "evil\\x1b[2J" in shown
    assert "\\u202egpj." in shown
    assert "\\u202e\\u2066 [/] 日本　語" in hostile("list").stdout
    assert "Next: ctk check-gpu $'x\\x1b[2J.sif'" in hostile().stdout
    document = json.loads(hostile("audit", "one", "--packages", "--json", status=None).stdout)
    assert any("\u202egpj." in row["name"] + row["version"] for row in document["distributions"]), (
        "JSON has the values themselves"
    )


def test_a_warning_about_code_that_is_read_does_not_quote_it(hostile: Ctk, program: Ctk) -> None:
    """Python 3.12 and newer warn of `\\x` with the very character that follows the backslash."""
    (hostile.directory / "train.py").write_text("import torch\nx = '\\\x1b[2J'\n")
    assert program("new", "fresh", "--from", "train.py").stderr == ""


def test_the_tab_key_types_no_escape(hostile: Ctk, program: Ctk) -> None:
    bases = hostile.directory / "defs/bases.toml"
    bases.write_text(bases.read_text().replace("[evil]", '["evil\\u001b[2J"]'))
    done = program(_CTK_COMPLETE="complete_bash", COMP_WORDS="ctk build x --base ev", COMP_CWORD="4")
    assert done.stdout.strip() == ""


def test_document_is_valid_json_whatever_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    values = [float("nan"), float("inf"), 1.5, "a\ud800b", {"c\udcff": ("\udcff", None, True)}]
    output.print_json("x/1", {"values": values})
    text = capsys.readouterr().out
    document = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert document["values"] == [None, None, 1.5, "a?b", {"c?": ["?", None, True]}]
