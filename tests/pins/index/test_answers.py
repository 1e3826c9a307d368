"""What the answer of a server means to a user; uv and git, and the servers that they ask, are real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.index.download import fetch_file
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.index.uv import Uv


REFUSED = (
    (401, "refuses access (401 Unauthorized)", "UV_INDEX_NAME_USERNAME"),
    (403, "refuses access (403 Forbidden)", "~/.netrc"),
    (404, "nothing found at", "Correct the address"),
)


# To uv, an index that answers 404 is one without the package: `explain_conflict` names it.
@pytest.mark.index
@pytest.mark.parametrize(
    ("kind", "status", "words", "fix"),
    [
        (kind, *refused)
        for kind in ("find-links", "wheel", "index")
        for refused in REFUSED
        if (kind, refused[0]) != ("index", 404)
    ],
)
def test_a_refusal_names_the_address_the_status_and_the_fix(
    uv: Uv, refusing_server: str, tmp_path: Path, kind: str, status: int, words: str, fix: str
) -> None:
    path = {"find-links": "links", "wheel": "mine-1.0-py3-none-any.whl", "index": "simple"}[kind]
    address = f"{refusing_server}/{status}/{path}"
    requirement = f"mine @ {address}" if kind == "wheel" else "mine"
    (tmp_path / "packages.txt").write_text(requirement + "\n")
    options = {"find-links": ["--find-links", address], "wheel": [], "index": ["--index", address]}[kind]
    options += ["--no-index"] if kind != "index" else []
    with pytest.raises(ProgramFailed) as raised:
        uv.call(["pip", "compile", "packages.txt", *options], tmp_path)
    assert words in raised.value.message
    assert address in raised.value.message
    assert fix in (raised.value.fix or "")


@pytest.mark.index
@pytest.mark.parametrize(("status", "words", "fix"), REFUSED)
def test_refused_file_has_same_error_as_page(
    refusing_server: str, tmp_path: Path, status: int, words: str, fix: str
) -> None:
    with pytest.raises(ProgramFailed) as raised:
        fetch_file(f"{refusing_server}/{status}/mine-1.0.tar.gz", None, tmp_path)
    assert words in raised.value.message
    assert fix in (raised.value.fix or "")
