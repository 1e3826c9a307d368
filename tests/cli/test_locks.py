"""Which lock a command takes, and what it says of one that it changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pins.locks import ARM, SMALL
from toolkit.cli.locks import lock_policy, say_lock_change, say_others
from toolkit.pins.lock.changes import LockChange
from toolkit.pins.lock.lockfile import write_lock
from toolkit.pins.store import Found, Locks, Policy
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import WrongInput

PATH = Path("defs/mine.lock.toml")


def test_locked_comes_before_what_a_command_would_do_and_refuses_another_base() -> None:
    assert lock_policy(locked=False, base="debian-12", otherwise=Policy.PREVIEW) is Policy.PREVIEW
    assert lock_policy(locked=True, base=None, otherwise=Policy.UPDATE) is Policy.LOCKED
    with pytest.raises(WrongInput, match="leave out --base"):
        lock_policy(locked=True, base="debian-12", otherwise=Policy.UPDATE)


@pytest.mark.parametrize(
    ("change", "written", "lines"),
    [
        (None, True, []),
        (LockChange(made=True, added=("a==1", "b==2")), True, [f"Lock written to {PATH}: 2 packages."]),
        (
            LockChange(made=True, added=("a==1",)),
            False,
            [f"{PATH} does not exist; this command does not write it. `ctk lock mine` does."],
        ),
        (LockChange(made=False), True, [f"Lock {PATH} updated: the same packages."]),
        (
            LockChange(made=False, same_request=True),
            True,
            [f"Lock {PATH} was checked against the base: the same packages."],
        ),
        (
            LockChange(made=False, removed=("a==1",), changed=(("b", "1", "2"),), notes=("held back",)),
            True,
            [f"Lock {PATH} updated.", "  - a==1", "  ~ b 1 -> 2", "  Note: held back"],
        ),
        (
            LockChange(made=False, added=("a==1",)),
            False,
            [f"{PATH} is out of date; this command does not write it. `ctk lock mine` does.", "  + a==1"],
        ),
    ],
)
def test_a_change_is_said_on_standard_error(
    capsys: pytest.CaptureFixture[str], change: LockChange | None, written: bool, lines: list[str]
) -> None:
    say_lock_change(Found(SMALL, PATH, change), "mine", written=written)
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()) == ("", lines)


def test_build_that_updates_one_section_warns_of_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe("small", tmp_path / "small.toml", Base("mine", "debootstrap", "bookworm"), packages=("timm",))
    locks = Locks(tmp_path, tmp_path / "area", {}, print)
    path = locks.path(recipe)
    write_lock(SMALL, path)
    write_lock(ARM, path)
    say_others(Found(SMALL, path), locks, recipe)
    assert capsys.readouterr().err == "", "the lock was current"
    say_others(Found(SMALL, path, LockChange(made=False)), locks, recipe)
    shown = capsys.readouterr().err
    assert f"the section for aarch64 of {path} is out of date" in " ".join(shown.split())
    assert "ctk lock small --arch aarch64" in shown
