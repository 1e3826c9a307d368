"""Who may write a build's output, before the build."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import request
from toolkit.builds import permission
from toolkit.builds.permission import check_permission
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def closed(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Let nobody write these, as it is for a user other than root."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path not in paths and real(path, mode))


def refused(target: str = "mine", **more: object) -> str:
    with pytest.raises(WrongInput) as caught:
        check_permission(request(target, **more))  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.fix) == ("not-writable", "Choose another name or directory with -o.")
    return caught.value.message


def test_what_can_be_written_passes_and_nothing_is_made(here: Path) -> None:
    before = sorted(here.rglob("*"))
    check_permission(request("mine"))
    check_permission(request("mine", sandbox=True))
    assert sorted(here.rglob("*")) == before


def test_directory_and_log_that_cannot_be_written_are_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = request("mine").log
    log.touch()
    with monkeypatch.context() as patch:
        closed(patch, log)
        assert f"cannot write the log {log}" in refused(force=True)
    closed(monkeypatch, here)
    assert f"cannot write to {here}: it belongs to" in refused(force=True)


def test_a_sandbox_that_cannot_be_moved_aside_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed(monkeypatch, here / "sb")
    assert "cannot replace the directory" in refused(output=here / "sb", sandbox=True, force=True)


def test_in_a_sticky_directory_only_the_owner_replaces(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permission.os, "geteuid", lambda: here.stat().st_uid + 1)
    (here / "mine.sif.build.log").touch()
    asked = request("mine", force=True)
    check_permission(asked)
    here.chmod(0o1777)
    with pytest.raises(WrongInput, match=r"mine\.sif\.build\.log belongs to .*, and only its owner can replace it"):
        check_permission(asked)


def test_an_immutable_image_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "mine.sif").touch()

    def immutable(path: Path, _flags: int) -> int:
        raise PermissionError(1, "Operation not permitted", str(path))

    asked = request("mine", force=True)
    monkeypatch.setattr(permission.os, "open", immutable)
    with pytest.raises(WrongInput, match="immutable or append-only"):
        check_permission(asked)


def test_output_that_is_the_base_is_refused_by_any_name(here: Path) -> None:
    for output in ("base.sif", "./base.sif", "defs/../base.sif"):
        with pytest.raises(WrongInput, match="is the base of this build") as caught:
            check_permission(request("mine", base="base.sif", output=output, force=True))
        assert caught.value.code == "output-is-base"
