"""`ctk fetch`: its words and its document."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import RUNTIME
from tests.builds.small_store import lock_of, package
from tests.schemas import check_document
from toolkit.builds import fetching
from toolkit.builds.fetching import Fetched, FetchedBase, FetchedFile
from toolkit.cli import fetch
from toolkit.cli.documents.recipes import fetched_recipes
from toolkit.pins.lock.changes import LockChange
from toolkit.pins.store import Found
from toolkit.runtime import engine
from toolkit.support.errors import ProgramFailed, WrongInput

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk
    from toolkit.recipes.model import Recipe

FILES = (FetchedFile("one.whl", "ab" * 32, 2048, False), FetchedFile("two.whl", "cd" * 32, None, True))
BASE = FetchedBase("r.example/a/b@sha256:1", Path("/s/image.sif"), 2048, "r.example")
FOUND = Found(lock_of(package("one", b"one"), package("two", b"two")), Path("/p/mine.lock.toml"), LockChange(made=True))


def test_dry_run_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    fetch._say(Fetched("mine", BASE, FILES, ("two.whl",), FOUND), dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "two.whl is not in the store",
        "mine: not complete: `ctk build --offline` would fail",
        "  base r.example/a/b@sha256:1 (2.0 KiB): already in the store",
        "  lock /p/mine.lock.toml (2 packages): not written",
        "  2 package files: 1 in the store (2.0 KiB)",
        "· a build of mine needs from the network: two.whl",
    ]


def test_what_was_fetched_is_told_with_its_origin(capsys: pytest.CaptureFixture[str]) -> None:
    brought = FetchedFile("two.whl", "cd" * 32, 1024, True)
    layered = ("the Debian packages jq",)
    for fetched in (
        Fetched("mine", replace(BASE, new=True), (FILES[0], brought), (), replace(FOUND, change=None), layered),
        Fetched("other", FetchedBase("/p/base.sif", Path("/p/base.sif"), 1024), (), ()),
        Fetched("tree", FetchedBase("/p/sandbox", Path("/p/sandbox"), 0), (), ()),
    ):
        fetch._say(fetched, dry_run=False)
    assert capsys.readouterr().out.splitlines() == [
        "mine: ready for `ctk build --offline`",
        "  base r.example/a/b@sha256:1 (2.0 KiB): new, from r.example",
        "  lock /p/mine.lock.toml (2 packages): current",
        "  2 package files: 1 new, 1 already in the store (3.0 KiB)",
        "  layers of the steps with the Debian packages jq: in the store",
        "other: ready for `ctk build --offline`",
        "  base /p/base.sif (1.0 KiB): on this host",
        "tree: ready for `ctk build --offline`",
        "  base /p/sandbox: on this host",
    ]


def test_document_matches_its_schema() -> None:
    fetched = [Fetched("mine", None, FILES, ("two.whl",)), Fetched("mine", BASE, (), (), FOUND, ("jq",))]
    errors = {"other": WrongInput("no base at https://ann:secret@r.example", code="wrong-file")}
    document = fetched_recipes(fetched, errors, dry_run=False)
    check_document({"schema": "ctk.fetch/1", **document, "findings": []})
    (error,) = document["errors"]
    assert (error["recipe"], error["exit_status"], error["code"], error["fix"]) == ("other", 2, "wrong-file", None)
    assert "secret" not in error["message"]
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
    fetch._say(Fetched("mine", BASE, (), (), runs_post=True), dry_run=False)
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "· an offline build of mine runs `post` without a network",
        "    If it downloads something: ctk fetch mine --layers",
    ]


@pytest.fixture
def project(ctk: Ctk, monkeypatch: pytest.MonkeyPatch) -> Ctk:
    """Of these recipes only the network is missing: `bad` and `full` fail."""
    (ctk.directory / "defs").mkdir()
    for name in ("one", "bad", "full"):
        (ctk.directory / f"defs/{name}.toml").write_text('base = "debian-12"\napt = ["jq"]\n')

    def fetched(_request: object, recipe: Recipe, *_others: object) -> Fetched:
        if recipe.name == "bad":
            raise ProgramFailed("building bad failed", last_lines=("E: no jq",), code="build-failed")
        if recipe.name == "full":
            raise OSError(errno.ENOSPC, "No space left on device", "/scratch/x")
        return Fetched(recipe.name, BASE, (), ())

    monkeypatch.setattr(fetching, "fetch", fetched)
    monkeypatch.setattr(engine, "find_runtime", lambda _site: RUNTIME)
    return ctk


def test_recipe_that_fails_does_not_stop_the_others(project: Ctk) -> None:
    done = project("fetch", "bad", "one", "full", status=4)
    said = re.sub(r"\(\S+ \S+ free\)", "(FREE)", done.stderr).splitlines()
    assert said == [
        *("bad (1 of 3):", "  | E: no jq", "Error: building bad failed [build-failed]"),
        *("one (2 of 3):", "full (3 of 3):"),
        "Error: cannot write /scratch/x: No space left on device (FREE) [disk-full]",
        "Free some space there, or choose another directory; `quota -s` may show a quota that is used up.",
    ]
    assert done.stdout.startswith("one: ready for `ctk build --offline`\n")


def test_document_has_the_results_and_the_errors(project: Ctk) -> None:
    found = json.loads(project("fetch", "bad", "one", "full", "--json", status=4).stdout)
    assert [recipe["recipe"] for recipe in found["recipes"]] == ["one"]
    errors = [(error["recipe"], error["exit_status"], error["code"]) for error in found["errors"]]
    assert errors == [("bad", 4, "build-failed"), ("full", 3, "disk-full")]
    assert json.loads(project("fetch", "one", "--json").stdout)["errors"] == []
    assert json.loads(project("fetch", "bad", "--json", status=4).stdout)["schema"] == "ctk.error/1"


@pytest.mark.parametrize(
    ("argument", "fix"),
    [
        (
            "docker://r.example/a/one:1",
            "To keep the image for builds with --offline: ctk build docker://r.example/a/one:1",
        ),
        *((path, "ctk fetch one") for path in ("./defs/one.toml", "one.toml", "defs/one", "one.def")),
        *((path, "`ctk list` shows the recipes.") for path in ("defs", "defs/", "oci:one", "two.def")),
    ],
)
def test_what_is_no_name_of_a_recipe_is_refused_first(project: Ctk, argument: str, fix: str) -> None:
    done = project("fetch", "one", argument, status=2)
    assert done.stderr.splitlines() == [f"Error: ctk fetch takes names of recipes, not {argument}", fix]
    assert done.stdout == ""


def test_sizes_that_are_not_known_are_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    fetch._say(Fetched("mine", None, FILES[1:], ("two.whl",)), dry_run=False)
    fetch._say(Fetched("other", None, (), (), FOUND), dry_run=False)
    lines = capsys.readouterr().out.splitlines()
    assert "  1 package file: 0 new, 0 already in the store" in lines
    assert lines[-1] == "  lock /p/mine.lock.toml (2 packages): written"
