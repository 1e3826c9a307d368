"""Which paths of a base a build would overwrite."""

from __future__ import annotations

from toolkit.definitions.places import SCRIPT, STAGING, reserved_paths


def test_staging_directory_is_reserved_where_files_are_staged() -> None:
    assert reserved_paths([]) == (SCRIPT,)
    assert reserved_paths(["/etc/hosts", f"{STAGING}x/1"]) == (SCRIPT,)
    assert reserved_paths(["/etc/hosts", f"{STAGING}/1/x"]) == (SCRIPT, STAGING)
