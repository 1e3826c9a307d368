"""The help: groups of commands and options, `-h`, `ctk help`, and one style in all of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from toolkit.cli.help import ENVIRONMENT
from toolkit.cli.main import COMMANDS, load

if TYPE_CHECKING:
    from collections.abc import Iterator

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
