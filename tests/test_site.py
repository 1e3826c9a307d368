"""The site of the pages: built without a warning, whole, and readable without the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.pages import CHECKOUT, PAGES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# What a browser would fetch from elsewhere to show a page.
_FETCHED = re.compile(r'(?:\bsrc=|<link[^>]*(?<!canonical") href=|url\(|@import )["\']?(?:https?:)?//')


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    recipe = (CHECKOUT / "Makefile").read_text(encoding="utf-8").partition("\ndocs:")[2]
    line = re.search(r"^\t\$\(VENV\)/bin/sphinx-build (.*) -c docs \. build/site$", recipe, re.MULTILINE)
    assert line, "the line of `make docs`"
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *line[1].split(), "-c", str(source / "docs"), str(source), str(target)],
        # A proxy that is not there: whatever asks for an address fails.
        env={**os.environ, "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    done = build(CHECKOUT, site)
    assert done.returncode == 0, done.stderr
    return site


def test_site_has_every_page_and_an_index(site: Path) -> None:
    assert [page for page in PAGES if not (site / page).with_suffix(".html").exists()] == []
    start = re.search(r"url=([^\"]+)", (site / "index.html").read_text(encoding="utf-8"))
    assert start
    assert (site / start[1]).exists()


def test_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    shown = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert len(shown) > len(PAGES)
    fetching = {str(path.relative_to(site)) for path in shown if _FETCHED.search(path.read_text(encoding="utf-8"))}
    assert fetching == set()


def test_site_with_a_broken_link_is_not_built(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "docs").mkdir(parents=True)
    (checkout / "docs/conf.py").write_text(
        (CHECKOUT / "docs/conf.py").read_text(encoding="utf-8") + "_CONTENTS.clear()\n", encoding="utf-8"
    )
    (checkout / "README.md").write_text("# Title\n\n[gone](docs/gone.md) and [away](#no-such-heading)\n")
    done = build(checkout, tmp_path / "site")
    assert done.returncode == 1
    assert "docs/gone.md" in done.stderr
    assert "no-such-heading" in done.stderr
