"""When a version is far behind, and which source distributions are old: plain rules."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from packaging.version import Version

from toolkit.pins.index.wheels import File
from toolkit.pins.resolver.newest import is_far_behind, is_old_source

WHEEL, SOURCE = "thing-1.0-py3-none-any.whl", "thing-1.0.tar.gz"


def file(name: str, day: str | None) -> File:
    return File(name, "", None, datetime.fromisoformat(f"{day}T00:00:00+00:00") if day else None)


@pytest.mark.parametrize(
    ("version", "newest", "chosen", "released", "far"),
    [
        ("5.19.0", "5.23.0", file(WHEEL, "2026-10-01"), "2026-11-13", False),
        ("5.19.0", "5.23.0", file(WHEEL, "2025-10-01"), "2026-11-13", True),
        ("4.57.6", "5.23.0", file(WHEEL, "2026-10-01"), None, True),
        ("0.8.0", "202511", file(WHEEL, "2020-05-01"), "2025-11-13", True),
        ("1.0", "1.1", file(SOURCE, "2026-10-01"), "2026-11-13", True),
        ("1.0", "1.1", file(WHEEL, None), "2026-11-13", False),
        ("1.0", "1.1", file(WHEEL, "2020-05-01"), None, False),
        ("1.1", "1.1", file(SOURCE, "2020-05-01"), "2020-05-01", False),
    ],
)
def test_version_far_behind_is_of_an_older_major_or_a_year_or_a_source(
    version: str, newest: str, chosen: File, released: str | None, far: bool
) -> None:
    assert is_far_behind(version, newest, chosen, lambda: {Version(newest): file(WHEEL, released)}) is far


def test_list_of_releases_is_read_only_where_the_time_decides() -> None:
    def asked() -> dict[Version, File]:
        raise AssertionError("the list of releases was asked for")

    assert is_far_behind("1.0", "2.0", file(WHEEL, "2026-01-01"), asked)
    assert not is_far_behind("2.0", "2.0", file(WHEEL, "2020-01-01"), asked)


def test_old_source_is_older_than_three_years() -> None:
    today = datetime(2026, 11, 21, tzinfo=timezone.utc)
    assert is_old_source(file(SOURCE, "2023-11-01"), today)
    assert not is_old_source(file(SOURCE, "2023-12-01"), today)
    assert not is_old_source(file(WHEEL, "2010-01-01"), today)
    assert not is_old_source(file(SOURCE, None), today)
