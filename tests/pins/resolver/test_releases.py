"""The releases of a package as an index lists them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.python_targets import TORCH
from toolkit.pins.index.wheels import File
from toolkit.pins.resolver import releases
from toolkit.pins.resolver.question import Question
from toolkit.pins.resolver.releases import kept_row, list_releases, read_page
from toolkit.recipes.model import Index

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "https://index.example/simple/thing/"


def row(filename: str, **more: object) -> dict[str, object]:
    return {"url": f"https://files.example/{filename}", "filename": filename, "hashes": {"sha256": "0" * 64}, **more}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were asked; each answers with the same page."""
    found: list[str] = []
    rows = [
        row("thing-1.0-py3-none-any.whl", **{"upload-time": "2024-01-01T00:00:00.123456Z"}),
        row("thing-2.0-py3-none-any.whl", **{"upload-time": "2025-01-01T00:00:00Z"}),
        row("thing-2.1.tar.gz", **{"upload-time": "2025-02-01T00:00:00Z"}),
        row("thing-3.0rc1-py3-none-any.whl"),
        row("thing-4.0-py3-none-any.whl", yanked="broken"),
        row("thing-5.0-cp27-cp27mu-manylinux1_x86_64.whl"),
        row("thing-6.0-py3-none-any.whl", **{"requires-python": ">=3.12"}),
        row("thing_more-7.0-py3-none-any.whl"),
        row("thing-8.0.exe"),
    ]

    def read_url(address: str, _: object, **__: str) -> tuple[bytes, object]:
        found.append(address)
        return json.dumps({"files": rows}).encode(), None

    monkeypatch.setattr(releases, "read_url", read_url)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://eve:secret@mirror.example/simple/")
    return found


def versions(tmp_path: Path, **more: object) -> list[str]:
    question = Question(TORCH, ("thing",), **more)  # type: ignore[arg-type]
    return [str(release.version) for release in list_releases("thing", question, tmp_path)]


def test_row_of_a_file_is_taken_from_a_page_of_any_age(tmp_path: Path, asked: list[str]) -> None:
    question = Question(TORCH, ("thing",))
    file = File("thing-6.0-py3-none-any.whl", "", "0" * 64)
    assert kept_row("thing", file, question, tmp_path) is None
    versions(tmp_path)
    for page in tmp_path.iterdir():
        os.utime(page, (0, 0))
    found = kept_row("thing", file, question, tmp_path)
    assert found is not None
    assert found["requires-python"] == ">=3.12"
    for other in (replace(file, sha256="1" * 64), replace(file, sha256=None), replace(file, name="thing-7.0.tar.gz")):
        assert kept_row("thing", other, question, tmp_path) is None
    assert len(asked) == 1


def test_releases_are_those_that_an_image_can_take(tmp_path: Path, asked: list[str]) -> None:
    assert versions(tmp_path) == ["2.1", "2.0", "1.0"]
    assert versions(tmp_path) == ["2.1", "2.0", "1.0"]
    assert asked == ["https://mirror.example/simple/thing/"], "kept, and without the password"


@pytest.mark.parametrize("damage", [b"", pytest.param(b"[" * 100_000, id="deep"), b"{}", b"[1]", b"\xff"])
def test_kept_page_that_is_damaged_is_read_again(tmp_path: Path, asked: list[str], damage: bytes) -> None:
    found = versions(tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(damage)
    assert versions(tmp_path) == found
    assert len(asked) == 2


def test_page_that_is_nested_too_deeply_has_no_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "read_url", lambda *_, **__: (b'{"files":' + b"[" * 100_000, None))
    assert versions(tmp_path) == []


def test_releases_of_a_day_are_those_that_were_there(tmp_path: Path, asked: list[str]) -> None:
    assert versions(tmp_path, exclude_newer="2024-12-31") == ["1.0"]
    assert len(asked) == 1


def test_releases_are_asked_from_the_index_of_the_package(tmp_path: Path, asked: list[str]) -> None:
    own = Index("own", "https://own.example/simple", packages=("thing",))
    other = Index("other", "https://other.example/simple")
    links = Index("links", "https://links.example/", kind="find-links")
    assert versions(tmp_path, indexes=(other, own, links)) == ["2.1", "2.0", "1.0"]
    assert asked == ["https://own.example/simple/thing/"]
    versions(tmp_path, indexes=(links, other))
    assert asked[1:] == ["https://other.example/simple/thing/"]


def test_releases_of_an_index_without_an_answer_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_url(*_: object, **__: str) -> tuple[bytes, object]:
        raise OSError("no route to host")

    monkeypatch.setattr(releases, "read_url", read_url)
    assert versions(tmp_path) == []


def test_release_page_is_read_as_html() -> None:
    html = (
        '<a href="../../files/thing-1.0-py3-none-any.whl#sha256=abc" data-requires-python="&gt;=3.8">x</a>'
        '<a href="thing-2.0.tar.gz" data-yanked>y</a><a>z</a>'
    )
    first, second = read_page(html, PAGE)
    assert first["url"] == "https://index.example/files/thing-1.0-py3-none-any.whl"
    assert (first["hashes"], first["requires-python"], first["yanked"]) == ({"sha256": "abc"}, ">=3.8", False)
    assert (second["filename"], second["hashes"], second["yanked"]) == ("thing-2.0.tar.gz", {}, True)


@given(st.one_of(st.text(), st.binary().map(lambda content: content.decode(errors="replace"))))
def test_release_page_of_any_text_is_read_or_refused(text: str) -> None:
    try:
        rows = read_page(text, PAGE)
    except ValueError:
        assert text.lstrip().startswith("{")
    else:
        assert all(isinstance(row["url"], str) for row in rows)
