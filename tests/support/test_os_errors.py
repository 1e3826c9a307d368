"""Errors: whose mistake an unexpected one of the system is."""

from __future__ import annotations

import errno
import os
import pwd
from typing import TYPE_CHECKING

import pytest

from toolkit.support.os_errors import from_os_error, unreadable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("number", "status"), [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.EIO, 3)])
def test_an_unexpected_system_error_is_the_users_or_the_hosts(number: int, status: int) -> None:
    error = from_os_error(OSError(number, "reason", "/some/file"))
    assert (error.exit_status, error.message, error.code) == (status, "cannot use /some/file: reason", "system-error")
    assert from_os_error(OSError(number, "reason")).exit_status == 3, "no path, nothing to fix"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_its_free_space(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = from_os_error(OSError(number, os.strerror(number), str(tmp_path / "not/there")))
    assert (error.exit_status, error.code) == (3, "disk-full")
    assert error.message.startswith(f"cannot write {tmp_path}/not/there: {os.strerror(number)} (")
    assert error.message.endswith("B free)")
    (tmp_path / "area").mkdir()
    monkeypatch.setenv("CTK_HOME", str(tmp_path / "area"))
    monkeypatch.chdir(tmp_path)
    without_path = from_os_error(OSError(number, os.strerror(number)))
    assert (without_path.exit_status, without_path.code) == (3, "disk-full")
    for place in (tmp_path, tmp_path / "area"):
        assert f"{place} (" in without_path.message


def test_unreadable_file_names_its_owner_and_what_to_ask_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "theirs.sif"
    image.touch(0o640)
    image.chmod(0o640)
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (image, os.R_OK))
    assert unreadable(image).fix == f"chmod u+r {image}"
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    error = unreadable(image)
    owner = pwd.getpwuid(image.stat().st_uid).pw_name
    assert error.message == f"cannot read {image}: it belongs to {owner} and has mode 0640, which does not let you"
    assert error.fix == f"Ask {owner} for the permission (chmod a+r {image}), or for a copy."
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)
    assert f"the directory {tmp_path} belongs to {owner} and has mode " in unreadable(image).message
    assert f"chmod a+x {tmp_path}" in (unreadable(image).fix or "")
