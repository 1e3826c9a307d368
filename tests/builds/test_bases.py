"""The base of a recipe on this machine: where it is kept, and by which digest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import context, request
from tests.inventory.making import fill
from toolkit.builds import bases
from toolkit.builds.bases import base_digest, has_mount_point, kept_base, present_base, refuse_reserved
from toolkit.builds.context import Listener
from toolkit.pins.bases import registry
from toolkit.pins.guard.script import UV_MOUNT
from toolkit.recipes.model import Base, Bootstrap, FileCopy, Recipe
from toolkit.support.errors import ProgramFailed, WrongInput

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = f"sha256:{'a1' * 32}"
TAGGED = Base("hub", Bootstrap.DOCKER, "a/b:1")


def recipe(here: Path, base: Base) -> Recipe:
    return Recipe("mine", here / "defs/mine.toml", base, packages=("six",))


def answering(monkeypatch: pytest.MonkeyPatch, answer: str | ProgramFailed) -> list[str]:
    """A registry that gives this digest, or fails; what it is asked."""
    asked: list[str] = []

    def fetch(reference: str) -> str:
        asked.append(reference)
        if isinstance(answer, ProgramFailed):
            raise answer
        return answer

    monkeypatch.setattr(registry, "fetch_digest", fetch)
    return asked


def test_a_known_digest_is_not_asked_for(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, DIGEST)
    locks = context(here, preview=False).locks
    pinned = replace(TAGGED, digest="sha256:1")
    assert base_digest(recipe(here, pinned), locks) == "sha256:1"
    assert base_digest(recipe(here, TAGGED), locks, ask=False) is None
    assert base_digest(recipe(here, Base("d", Bootstrap.DEBOOTSTRAP, "bookworm")), locks) is None
    assert asked == []
    assert base_digest(recipe(here, TAGGED), locks) == DIGEST
    assert asked == ["a/b:1"]


def test_a_registry_that_cannot_be_asked_leaves_the_tag_but_an_untrusted_one_ends_the_build(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = context(here, preview=False).locks
    answering(monkeypatch, ProgramFailed("no answer"))
    assert base_digest(recipe(here, TAGGED), locks) is None
    answering(monkeypatch, ProgramFailed("not trusted", code="certificate"))
    with pytest.raises(ProgramFailed, match="not trusted"):
        base_digest(recipe(here, TAGGED), locks)


def test_a_base_that_is_kept_is_not_pulled_again_and_a_preview_pulls_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "_pull", lambda *_: pytest.fail("it is pulled"))
    asked, pinned = request("mine"), recipe(here, replace(TAGGED, digest=DIGEST))
    preview = present_base(asked, pinned, context(here, preview=True), Listener())
    assert (preview.image, preview.digest) == (None, DIGEST)
    kept = kept_base(DIGEST, context(here, preview=False).area)
    kept.parent.mkdir(parents=True)
    kept.touch()
    found = present_base(asked, pinned, context(here, preview=False), Listener())
    assert (found.image, found.digest) == (kept, DIGEST)
    assert kept.name == f"{'a1' * 32}.sif"
    own = recipe(here, Base("base.sif", Bootstrap.LOCALIMAGE, str(here / "base.sif")))
    assert present_base(asked, own, context(here, preview=False), Listener()).image == here / "base.sif"


def test_uv_is_bound_only_where_its_directory_is(here: Path) -> None:
    debian, docker = Base("d", Bootstrap.DEBOOTSTRAP, "bookworm"), TAGGED
    assert has_mount_point(recipe(here, debian), None)
    assert not has_mount_point(recipe(here, docker), None)
    assert not has_mount_point(recipe(here, docker), here / "sb")
    fill(here / "sb", {f"{UV_MOUNT}/": ""})
    assert has_mount_point(recipe(here, docker), here / "sb")


@pytest.mark.parametrize("name", [".post.script", ".ctk-files/1/data"])
@pytest.mark.parametrize("content", ["-> /host", "a file"])
def test_base_with_files_where_a_build_puts_its_own_is_refused(here: Path, name: str, content: str) -> None:
    image = fill(here / "base", {"etc/": "", "bin/": "", name: content})
    asked = replace(recipe(here, TAGGED), packages=(), post="true", files=(FileCopy(here / "data", "/opt/data"),))
    with pytest.raises(WrongInput, match="where a build puts files of its own") as refused:
        refuse_reserved(asked, None, image)
    assert refused.value.code == "base-reserved-path"
    refuse_reserved(asked, None, fill(here / "other", {"etc/": "", "bin/": ""}))
    refuse_reserved(replace(asked, post="", files=()), None, image)
