"""The Tab key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Ctk

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk


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


def test_the_tab_key_offers_no_name_that_a_shell_would_run(program: Ctk) -> None:
    (program.directory / "defs").mkdir()
    (program.directory / "defs/bases.toml").write_text(
        '["debian-y\\\\$(touch X)"]\nbootstrap = "debootstrap"\nreference = "bookworm"\n'
    )
    done = program(_CTK_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="ctk build x --base debian-")
    assert "touch" not in done.stdout
    assert done.stderr == ""
