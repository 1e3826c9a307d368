"""The base of a recipe on this machine: where it is kept, and by which digest."""

from __future__ import annotations

import os
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import RUNTIME, context, keep_base, request, small_sif
from tests.inventory.making import fill
from toolkit.builds import bases, bootstrapped
from toolkit.builds.bases import (
    Pulling,
    base_digest,
    base_key,
    base_to_read,
    find_base,
    has_mount_point,
    kept_base,
    known_digest,
    present_base,
    present_digest,
    refuse_reserved,
    registry_base,
)
from toolkit.builds.context import Listener
from toolkit.pins.bases import registry
from toolkit.pins.guard.script import UV_MOUNT
from toolkit.recipes.model import Base, Bootstrap, FileCopy, Recipe, Target
from toolkit.store.entries import is_key
from toolkit.store.store import Kind
from toolkit.support.errors import ProgramFailed, WrongInput
from toolkit.support.site import Setting, Site

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.pulling import Maker

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
    files_only = replace(recipe(here, TAGGED), packages=())
    assert base_digest(files_only, locks) is None
    with pytest.raises(ProgramFailed, match="no answer"):
        base_digest(recipe(here, TAGGED), locks)
    answering(monkeypatch, ProgramFailed("not trusted", code="certificate"))
    with pytest.raises(ProgramFailed, match="not trusted"):
        base_digest(files_only, locks)


def test_what_a_tag_named_is_known_without_the_registry(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locks = context(here, preview=False).locks
    assert known_digest(recipe(here, TAGGED), locks) is None
    asked = answering(monkeypatch, DIGEST)
    base_digest(recipe(here, TAGGED), locks)
    assert known_digest(recipe(here, TAGGED), locks) == DIGEST
    assert known_digest(recipe(here, replace(TAGGED, reference="a/b:2")), locks) is None
    assert base_digest(recipe(here, TAGGED), locks, ask=False) is None, "what is built is asked for"
    for made in (context(here, preview=True), replace(context(here, preview=False), offline=True)):
        assert present_digest(recipe(here, TAGGED), made, print) == DIGEST
    assert asked == ["a/b:1"]


def test_a_base_that_is_kept_is_not_pulled_again_and_a_preview_pulls_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "pull_base", lambda *_, **__: pytest.fail("it is pulled"))
    asked, pinned = request("mine"), recipe(here, replace(TAGGED, digest=DIGEST))
    preview = present_base(asked, pinned, context(here, preview=True), Listener())
    assert (preview.image, preview.digest) == (None, DIGEST)
    kept = keep_base(here, DIGEST)
    assert kept == kept_base(DIGEST, context(here, preview=False).area)
    found = present_base(asked, pinned, context(here, preview=False), Listener())
    assert (found.image, found.digest) == (kept, DIGEST)
    assert kept.parent.name == "a1" * 32
    own = recipe(here, Base("base.sif", Bootstrap.LOCALIMAGE, str(here / "base.sif")))
    assert present_base(asked, own, context(here, preview=False), Listener()).image == here / "base.sif"


@pytest.mark.programs
def test_what_an_earlier_ctk_kept_is_taken_over_once(here: Path) -> None:
    store = context(here, preview=False).store
    old = store.own.parent / "bases" / f"{'a1' * 32}.sif"
    old.parent.mkdir(parents=True)
    image = small_sif(here)
    image.rename(old)
    digest = sha256(old.read_bytes()).hexdigest()
    found = find_base(DIGEST, store, TAGGED)
    assert found is not None
    assert found.is_relative_to(store.own)
    assert sha256(found.read_bytes()).hexdigest() == digest
    assert not old.exists()
    entry = store.find(Kind.BASE, base_key(DIGEST))
    assert entry is not None
    assert entry.about["digest"] == DIGEST


@pytest.mark.programs
@pytest.mark.parametrize("trouble", ["damaged", "writable", "link"])
def test_what_an_earlier_ctk_kept_is_not_used_if_it_may_be_another(here: Path, trouble: str) -> None:
    store = context(here, preview=False).store
    old = store.own.parent / "bases" / f"{'a1' * 32}.sif"
    old.parent.mkdir(parents=True)
    image = small_sif(here)
    if trouble == "link":
        old.symlink_to(image)
    else:
        image.rename(old)
    if trouble == "damaged":
        old.write_bytes(old.read_bytes()[:-300])
    if trouble == "writable":
        old.chmod(0o666)
    assert find_base(DIGEST, store, TAGGED) is None


def test_key_of_a_base_is_its_digest_unless_that_does_not_say_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "host_architecture", lambda: "x86_64")
    archive = Base("a.tar:one", Bootstrap.DOCKER_ARCHIVE, "/a.tar:one")
    other = replace(archive, reference="/a.tar:two")
    assert base_key(DIGEST, TAGGED) == base_key(DIGEST) == "a1" * 32
    keys = {base_key(DIGEST), base_key(DIGEST, archive), base_key(DIGEST, other)}
    assert len(keys) == 3
    assert base_key(DIGEST, replace(archive, reference="/moved/a.tar:one")) == base_key(DIGEST, archive)
    monkeypatch.setattr(bases, "host_architecture", lambda: "aarch64")
    keys |= {base_key(DIGEST), base_key(DIGEST, archive)}
    assert len(keys) == 5
    assert all(map(is_key, keys))


def test_base_edited_in_place_is_not_used(here: Path) -> None:
    """With its time set back, as `touch -r` does."""
    kept, store = keep_base(here, DIGEST), context(here, preview=False).store
    assert find_base(DIGEST, store) == kept
    before = kept.stat()
    with kept.open("r+b") as file:
        file.seek(-200, 2)
        file.write(b"!")
    os.utime(kept, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kept.stat().st_size == before.st_size
    assert find_base(DIGEST, store) is None
    assert not kept.exists()


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


def test_reference_without_a_recipe_starts_from_the_image_in_the_store(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, DIGEST)
    building, build = context(here, preview=False), request("docker://a/b:1", output=here / "x.sif")
    image = keep_base(here, DIGEST)
    start, present = registry_base(build, TAGGED, building, Listener())
    assert (start.pinned_reference, present.image, present.digest) == (f"a/b@{DIGEST}", image, DIGEST)


def test_pull_for_a_lock_keeps_to_the_limits_of_the_site(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock is made on the login node, and the base that is pulled for it is packed there."""
    answering(monkeypatch, DIGEST)
    made: list[Maker] = []

    def pull(_base: Base, _key: str, _state: object, maker: Maker) -> SimpleNamespace:
        made.append(maker)
        return SimpleNamespace(path=here / "x.sif")

    monkeypatch.setattr(bases, "pull_base", pull)
    monkeypatch.setattr(bases, "require_architecture", lambda *_: None)
    monkeypatch.setattr(bases, "load_site", lambda: Site(cores=Setting(2, "site"), memory=Setting(1 << 30, "site")))
    there = context(here, preview=False)
    pulling = Pulling(lambda: RUNTIME, Listener())
    found = base_to_read(recipe(here, TAGGED), there.locks, there.area, pulling, pull=True)
    assert (found.image, found.digest) == (here / "x.sif", DIGEST)
    assert [(maker.options.cores, maker.options.memory) for maker in made] == [(2, 1 << 30)]


@pytest.mark.parametrize("kept", [True, False])
def test_lock_reads_a_recorded_base_that_a_build_left_and_brings_none(
    here: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Such a lock holds for the next build, which would otherwise choose the versions again."""
    asked = answering(monkeypatch, DIGEST)
    image = keep_base(here, DIGEST) if kept else None
    there = context(here, preview=False)
    pulling = Pulling(lambda: pytest.fail("nothing is pulled"), Listener())
    for base in (replace(TAGGED, digest=DIGEST, python="3.11"), replace(TAGGED, python="3.11")):
        found = base_to_read(recipe(here, base), there.locks, there.area, pulling, pull=True)
        assert found.image == (image if base.digest else None)
    assert not asked


def test_lock_reads_the_debian_base_that_a_build_left(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = here / "image.sif"
    monkeypatch.setattr(bootstrapped, "kept_bootstrapped", lambda *_: image)
    there = context(here, preview=False)
    base = Base("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm", python="3.11")
    pulling = Pulling(lambda: pytest.fail("nothing is pulled"), Listener())
    assert base_to_read(recipe(here, base), there.locks, there.area, pulling, pull=True).image == image
    arm = replace(recipe(here, base), target=Target(architectures=("aarch64",)))
    assert base_to_read(arm, there.locks, there.area, pulling, pull=True).image is None


def test_base_that_the_store_has_is_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, DIGEST)
    keep_base(here, DIGEST)
    told: list[tuple[str, float, bool]] = []
    listener = Listener(on_step_done=lambda name, seconds, /, *, cached: told.append((name, seconds, cached)))
    building, build = context(here, preview=False), request("docker://a/b:1", output=here / "x.sif")
    registry_base(build, TAGGED, building, listener)
    assert present_base(build, recipe(here, TAGGED), building, listener).digest == DIGEST
    assert told == [("the base a/b:1", 0.0, True)] * 2


@pytest.mark.parametrize("why", ["preview", "silent registry", "local"])
def test_runtime_itself_brings_what_has_no_digest(here: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    silent = ProgramFailed("no answer")
    asked = answering(monkeypatch, silent if why == "silent registry" else DIGEST)
    base = TAGGED if why != "local" else Base("x", Bootstrap.LOCALIMAGE, str(here / "x.sif"))
    building, build = context(here, preview=why == "preview"), request("docker://a/b:1", output=here / "x.sif")
    start, present = registry_base(build, base, building, Listener())
    assert (start, present.image) == (base, None)
    assert bool(asked) == (why == "silent registry")
