"""Errors: whose mistake an unexpected one of the system is."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from toolkit.support.os_errors import from_os_error

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
