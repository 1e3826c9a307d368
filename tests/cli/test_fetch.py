"""`ctk fetch`: its words and its document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.builds.small_store import lock_of, package
from tests.schemas import check_document
from toolkit.builds.fetching import Fetched, FetchedBase, FetchedFile
from toolkit.cli import fetch
from toolkit.cli.documents.recipes import fetched_recipes
from toolkit.pins.lock.changes import LockChange
from toolkit.pins.store import Found

if TYPE_CHECKING:
    import pytest

FILES = (FetchedFile("one.whl", "ab" * 32, 2048, False), FetchedFile("two.whl", "cd" * 32, None, True))
BASE = FetchedBase("r.example/a/b@sha256:1", Path("/s/image.sif"), 2048, "r.example")
FOUND = Found(lock_of(package("one", b"one"), package("two", b"two")), Path("/p/mine.lock.toml"), LockChange(made=True))


def test_dry_run_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    fetch._say([Fetched("mine", BASE, FILES, ("two.whl",), FOUND)], dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "two.whl is not in the store",
        "mine: not complete: `ctk build --offline` would fail",
        "  base r.example/a/b@sha256:1 (2.0 KiB): already in the store",
        "  lock /p/mine.lock.toml (2 packages): not written",
        "  2 package files (2.0 KiB): 1 in the store",
        "· a build of mine needs from the network: two.whl",
    ]


def test_what_was_fetched_is_told_with_its_origin(capsys: pytest.CaptureFixture[str]) -> None:
    brought = FetchedFile("two.whl", "cd" * 32, 1024, True)
    layered = ("the Debian packages jq",)
    fetch._say(
        [
            Fetched("mine", replace(BASE, new=True), (FILES[0], brought), (), replace(FOUND, change=None), layered),
            Fetched("other", FetchedBase("/p/base.sif", Path("/p/base.sif"), 1024), (), ()),
            Fetched("tree", FetchedBase("/p/sandbox", Path("/p/sandbox"), 0), (), ()),
        ],
        dry_run=False,
    )
    assert capsys.readouterr().out.splitlines() == [
        "mine: ready for `ctk build --offline`",
        "  base r.example/a/b@sha256:1 (2.0 KiB): new, from r.example",
        "  lock /p/mine.lock.toml (2 packages): current",
        "  2 package files (3.0 KiB): 1 new, 1 already in the store",
        "  layers of the steps with the Debian packages jq: in the store",
        "other: ready for `ctk build --offline`",
        "  base /p/base.sif (1.0 KiB): on this host",
        "tree: ready for `ctk build --offline`",
        "  base /p/sandbox: on this host",
    ]


def test_document_matches_its_schema() -> None:
    fetched = [Fetched("mine", None, FILES, ("two.whl",)), Fetched("mine", BASE, (), (), FOUND, ("jq",))]
    document = fetched_recipes(fetched, dry_run=False)
    check_document({"schema": "ctk.fetch/1", **document, "findings": []})
    assert document["recipes"][0]["base_reference"] is None
    assert document["recipes"][1]["base_reference"] == "r.example/a/b@sha256:1"
    assert document["recipes"][1]["lock"] == "/p/mine.lock.toml"
    assert document["recipes"][0]["files"][1] == {
        "name": "two.whl",
        "sha256": "cd" * 32,
        "size_bytes": None,
        "new": True,
    }


def test_post_that_was_not_run_is_told_with_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    fetch._say([Fetched("mine", BASE, (), (), runs_post=True)], dry_run=False)
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "· an offline build of mine runs `post` without a network",
        "    If it downloads something: ctk fetch mine --layers",
    ]
