"""`ctk fetch`: its words and its document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.schemas import check_document
from toolkit.builds.fetching import Fetched, FetchedFile
from toolkit.cli import fetch
from toolkit.cli.documents.recipes import fetched_recipes

if TYPE_CHECKING:
    import pytest

FILES = (FetchedFile("one.whl", "ab" * 32, 2048, False), FetchedFile("two.whl", "cd" * 32, None, True))


def test_dry_run_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    fetch._say([Fetched("mine", None, FILES, ("two.whl",))], dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "two.whl is not in the store",
        "mine: 1 of 2 package files here",
        "mine is not complete: `ctk build --offline` would fail.",
        "· a build of mine needs from the network: two.whl",
    ]


def test_document_matches_its_schema() -> None:
    document = fetched_recipes([Fetched("mine", None, FILES, ("two.whl",))], dry_run=False)
    check_document({"schema": "ctk.fetch/1", **document, "findings": []})
    assert document["recipes"][0]["files"][1] == {
        "name": "two.whl",
        "sha256": "cd" * 32,
        "size_bytes": None,
        "new": True,
    }
