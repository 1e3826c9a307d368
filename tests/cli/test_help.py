"""The help: groups of commands and options, `-h`, `ctk help`, and one style in all of it."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import PROGRAM, Ctk
from tests.cli.test_main import NAMES
from toolkit.cli.help import ENVIRONMENT
from toolkit.cli.main import COMMANDS, help_text, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.core import TyperCommand

    from tests.cli.conftest import Ctk


GROUPS = ["Images", "Packages", "GPU", "Jobs", "Practice and host"]


def parameters(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for parameter in command.params:
        yield f"{name} {parameter.opts[0]}", parameter
    for word, inner in getattr(command, "commands", {}).items():
        yield from parameters(inner, f"{name} {word}")


PARAMETERS = dict(found for entry in COMMANDS for found in parameters(load(entry), entry.name))


def test_commands_stand_in_groups_in_the_order_of_their_use(program: Ctk) -> None:
    text = program("--help").stdout
    headings = re.findall(r"^(\w.*):$", text, re.MULTILINE)
    assert headings == ["Options", *GROUPS, "Environment variables"]
    assert re.findall(r"^  ([a-z][a-z-]*) ", text.partition("Images:")[2], re.MULTILINE)[: len(COMMANDS)] == [
        entry.name for entry in COMMANDS
    ]


def test_environment_variables_end_the_help(program: Ctk) -> None:
    text = program("--help").stdout
    for name in ENVIRONMENT:
        assert f"\n  {name} " in text.partition("Environment variables:")[2]


@pytest.mark.parametrize("words", [["build"], ["lab", "up"], ["lab"], []], ids=" ".join)
def test_help_is_asked_for_in_three_ways(ctk: Ctk, words: list[str]) -> None:
    text = ctk(*words, "--help").stdout
    assert text.startswith(f"Usage: {' '.join(['ctk', *words])}")
    assert ctk(*words, "-h").stdout == text
    assert ctk("help", *words).stdout == text


def test_help_of_an_unknown_command_names_the_nearest(ctk: Ctk) -> None:
    assert "Did you mean 'build'" in ctk("help", "biuld", status=2).stderr


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_option_is_explained_in_one_style(name: str) -> None:
    parameter = PARAMETERS[name]
    text = parameter.help or ""
    sentence = re.sub(r"\s*\[default: [^\]]+\]$", "", text)
    assert re.fullmatch(r"[A-Z`n/].*\.", sentence), f"{name}: {text!r}"
    assert "folder" not in sentence
    assert not re.search(r"\bshall\b|\bWhich\b|\bHow many\b", sentence), sentence


@pytest.mark.parametrize("name", [name for name, found in PARAMETERS.items() if found.metavar])
def test_placeholders_are_upper_case(name: str) -> None:
    metavar = PARAMETERS[name].metavar
    assert metavar == "zstd|gzip" or re.sub(r"[^\w]", "", metavar).replace("ro", "").isupper(), f"{name}: {metavar}"


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


def test_summaries_are_sentences() -> None:
    for entry in COMMANDS:
        assert entry.summary.endswith(".")
        assert len(entry.summary) <= 66, "the help is one line a command on 80 columns"
