"""`ctk def` as a user meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ctk


def test_a_definition_is_utf8_in_every_locale(program: Ctk) -> None:
    (program.directory / "defs").mkdir()
    (program.directory / "defs/own.toml").write_text(
        'base = "pytorch-2.6"\n[environment]\nGREETING = "今日は"\n', encoding="utf-8"
    )
    assert "GREETING='今日は'\n" in program("def", "own", PYTHONIOENCODING="latin-1").stdout


def test_on_a_terminal_a_definition_is_not_wrapped(ctk: Ctk, on_a_terminal: Callable[..., str]) -> None:
    (ctk.directory / "defs").mkdir()
    words = " ".join(f"word{number}" for number in range(40)) + " :smile: [red]"
    (ctk.directory / "defs/long.toml").write_text(f'base = "pytorch-2.6"\n[environment]\nLONG = "{words}"\n')
    assert f"    export LONG='{words}'\n" in on_a_terminal("def", "long")
