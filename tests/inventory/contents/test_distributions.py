"""Installed distributions: every kind of metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.contents.test_interpreters import SITE, inventory
from tests.inventory.making import python_files, variables_after
from toolkit.inventory.contents.distributions import parse_headers, parse_requires_txt
from toolkit.inventory.contents.system import parse_dpkg

if TYPE_CHECKING:
    from pathlib import Path


def test_every_kind_of_metadata(tmp_path: Path) -> None:
    found = inventory(
        tmp_path,
        python_files(),
        {
            f"{SITE}/a-1.0-py3.11.egg-info": "Metadata-Version: 1.0\nName: A\nVersion: 1.0\n",
            f"{SITE}/b-2.0.egg/EGG-INFO/PKG-INFO": "Name: b\nVersion: 2.0\n",
            f"{SITE}/c.egg-link": "/work/c\n.\n",
            "work/c/c.egg-info/PKG-INFO": "Name: c\nVersion: 3.0\n",
            f"{SITE}/d-4.0.dist-info/WHEEL": "",
            f"{SITE}/e-5.0.dist-info/METADATA": "Name: e\nVersion: 5.0\nRequires-Dist: x\n y\n\nRequires-Dist: no\n",
            f"{SITE}/e-5.0.dist-info/direct_url.json": '{"url": "file:///build/e.whl"}',
            f"{SITE}/f-6.0.dist-info/METADATA": "Name: f\nVersion: 6\x1b[31m0\n",
        },
    )
    versions = {distribution.name: distribution.version for distribution in found.distributions}
    assert versions == {"a": "1.0", "b": "2.0", "c": "3.0", "d": "4.0", "e": "5.0", "f": "6 [31m0"}
    last = next(distribution for distribution in found.distributions if distribution.name == "e")
    assert last.direct_url == "file:///build/e.whl"
    assert last.requires == ("x  y",)


def test_requires_txt_becomes_requires_dist() -> None:
    text = "numpy>=1\n\n[extra]\nscipy\n\n[:python_version < '3']\nenum34\n\n[gpu:os_name == 'posix']\ncupy\n"
    assert parse_requires_txt(text) == (
        [
            "numpy>=1",
            'scipy; extra == "extra"',
            "enum34; (python_version < '3')",
            "cupy; (os_name == 'posix') and extra == \"gpu\"",
        ],
        ["extra", "gpu"],
    )


@given(st.text())
def test_parsers_take_any_text(text: str) -> None:
    parse_headers(text)
    parse_requires_txt(text)
    list(parse_dpkg(text))
    variables_after(text)
