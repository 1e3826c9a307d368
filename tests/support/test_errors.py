"""Errors: whose mistake an unexpected one of the system is."""

from __future__ import annotations

import errno

import pytest

from toolkit.support.errors import from_os_error


@pytest.mark.parametrize(
    ("number", "status"),
    [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.ENOSPC, 3), (errno.EIO, 3)],
)
def test_an_unexpected_system_error_is_the_users_or_the_hosts(number: int, status: int) -> None:
    error = from_os_error(OSError(number, "reason", "/some/file"))
    assert (error.exit_status, error.message) == (status, "cannot use /some/file: reason")
    assert from_os_error(OSError(number, "reason")).exit_status == 3, "no path, nothing to fix"
