"""Whose files are trusted and may be changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolkit.support import ownership
from toolkit.support.ownership import change_own_mode, is_trusted, others_can_change, user_name

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_only_modes_of_own_files_are_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, link = tmp_path / "directory", tmp_path / "link"
    directory.mkdir(mode=0o700)
    directory.chmod(0o022)
    link.symlink_to("directory")
    change_own_mode(link, add=0o700)
    change_own_mode("link", add=0o700, dir_fd=os.open(tmp_path, os.O_RDONLY))
    assert directory.stat().st_mode & 0o777 == 0o022
    change_own_mode(link, add=0o500, remove=0o022, follow=True)
    assert directory.stat().st_mode & 0o777 == 0o500
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    change_own_mode(directory, add=0o777)
    assert directory.stat().st_mode & 0o777 == 0o500


def test_only_this_user_and_root_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert [is_trusted(uid) for uid in (0, 1001, 1002, 65534)] == [True, True, False, False]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert [is_trusted(uid) for uid in (0, 1001)] == [True, False]
    assert (user_name(0), user_name(3_000_000_000)) == ("root", "user 3000000000")


def test_others_can_change_what_is_theirs_or_open_but_not_by_the_private_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    found = {}
    for mode in (0o644, 0o664, 0o646):
        (tmp_path / "file").chmod(mode)
        found[mode] = others_can_change((tmp_path / "file").stat())
    assert found == {0o644: False, 0o664: False, 0o646: True}, "the tests' user has a group of the same name"
    (tmp_path / "file").chmod(0o664)
    monkeypatch.setattr(ownership, "_is_private", lambda _gid: False)
    assert others_can_change((tmp_path / "file").stat())
    (tmp_path / "file").chmod(0o644)
    monkeypatch.setattr(ownership, "is_trusted", lambda _uid: False)
    assert others_can_change((tmp_path / "file").stat())
