"""Debian's archive: the site's mirror, else the host's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.support.mirror import debian_mirror
from toolkit.support.site import Setting, Site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("sources.list", "deb http://a.example/debian bookworm main\n", "http://a.example/debian"),
        (
            "sources.list",
            "deb [arch=amd64 signed-by=/k] http://a.example/debian/ sid main\n",
            "http://a.example/debian/",
        ),
        ("sources.list", "# deb http://old.example/debian x\ndeb-src http://s.example/debian x\n", None),
        ("sources.list", "deb http://security.example/debian-security x main\n", None),
        (
            "sources.list.d/debian.sources",
            "Types: deb\nURIs: http://sec.example/debian-security http://b.example/debian\nSuites: x\n",
            "http://b.example/debian",
        ),
        ("sources.list.d/notes.txt", "deb http://a.example/debian x main\n", None),
    ],
)
def test_the_hosts_own_archive_is_found(tmp_path: Path, name: str, text: str, expected: str | None) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert debian_mirror(Site(), tmp_path) == expected


def test_the_sites_mirror_comes_first(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://a.example/debian bookworm main\n")
    assert (
        debian_mirror(Site(mirror=Setting("http://near.example/debian", "f")), tmp_path) == "http://near.example/debian"
    )
    assert debian_mirror(Site(), tmp_path / "no apt here") is None
