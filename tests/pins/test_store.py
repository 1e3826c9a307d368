"""What becomes of a lock that is missing or out of date: updated, refused, or made for this once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.pins.locks import SMALL, WHEEL
from tests.pins.python_targets import target
from toolkit.pins import store
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.bases.steady import PresentBase
from toolkit.pins.lock.lockfile import load_lock, write_lock
from toolkit.pins.lock.model import Inventoried
from toolkit.pins.lock.upgrade import NO_UPGRADE
from toolkit.pins.locking import input_hash
from toolkit.pins.store import Locks, Policy
from toolkit.recipes.architectures import architecture_of, for_architecture
from toolkit.recipes.model import Base, Recipe, Target
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.lock.model import Lock

BASE = Base("mine", "debootstrap", "bookworm", python="3.11")


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return Recipe("small", tmp_path / "defs/small.toml", BASE, packages=("timm", "einops"))


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Lock | None]:
    """What `make_lock` was given as the earlier lock, each time; it adds einops, and asks no index."""
    given: list[Lock | None] = []

    def make_lock(_uv: object, recipe: Recipe, _facts: object, *, earlier: Lock | None, **more: object) -> Lock:
        given.append(earlier)
        assert more["upgrade"] == NO_UPGRADE
        asked = input_hash(recipe, None, None)
        return replace(SMALL, input=asked, packages=(WHEEL, replace(WHEEL, name="einops", version="0.8.0")))

    monkeypatch.setattr(store, "make_lock", make_lock)
    monkeypatch.setattr("toolkit.pins.index.uv.open_uv", lambda _area: None)
    monkeypatch.setattr(store, "gather_facts", lambda base, *_, **__: BaseFacts(base, target(), None))
    return given


def locks(tmp_path: Path, policy: Policy) -> Locks:
    return Locks(tmp_path / "defs", tmp_path / "area", {}, lambda _text: None, policy)


def files(tmp_path: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (tmp_path / "defs").rglob("*") if path.is_file()}


def test_a_lock_that_is_out_of_date_is_updated_from_itself(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None]
) -> None:
    write_lock(SMALL, tmp_path / "defs/small.lock.toml")
    found = locks(tmp_path, Policy.UPDATE).for_build(recipe)
    assert earlier == [SMALL], "the versions of the earlier lock are preferred"
    assert found.change is not None
    assert found.change.lines == ("+ einops==0.8.0", "- keras-bert==0.89.0")
    assert load_lock(found.path, "x86_64") == found.lock
    again = locks(tmp_path, Policy.UPDATE).for_build(recipe)
    assert (again.change, len(earlier)) == (None, 1)


@pytest.mark.parametrize("there", [True, False])
def test_locked_refuses_what_is_not_current_and_writes_nothing(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None], there: bool
) -> None:
    if there:
        write_lock(SMALL, tmp_path / "defs/small.lock.toml")
    before, strict = files(tmp_path), locks(tmp_path, Policy.LOCKED)
    for ask in (strict.for_build, strict.require):
        with pytest.raises(CheckFailed) as caught:
            ask(recipe)
        assert caught.value.code == ("stale-lock" if there else "no-lock")
        assert "ctk lock small" in str(caught.value.fix)
    assert (files(tmp_path), earlier) == (before, [])


def test_locked_takes_a_current_lock(tmp_path: Path, recipe: Recipe, earlier: list[Lock | None]) -> None:
    lock = locks(tmp_path, Policy.UPDATE).for_build(recipe).lock
    strict = locks(tmp_path, Policy.LOCKED)
    strict.require(recipe)
    assert strict.for_build(recipe, PresentBase(tmp_path / "base.sif")).lock == lock
    assert len(earlier) == 1


@pytest.mark.parametrize("there", [True, False])
def test_a_preview_shows_what_a_build_would_lock_and_leaves_defs_alone(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None], there: bool
) -> None:
    if there:
        write_lock(SMALL, tmp_path / "defs/small.lock.toml")
    before, preview = files(tmp_path), locks(tmp_path, Policy.PREVIEW)
    found = preview.for_build(recipe)
    assert found.change is not None
    assert found.change.made is not there
    assert preview.for_build(recipe).lock == found.lock
    assert files(tmp_path) == before
    assert len(earlier) == (2 if there else 1), "a first lock is kept in the cache, so that it stays the same"
    assert locks(tmp_path, Policy.UPDATE).for_build(recipe).lock == found.lock


def test_a_preview_on_another_base_is_kept_in_the_cache(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None]
) -> None:
    preview, rebased = locks(tmp_path, Policy.PREVIEW), replace(recipe, rebased=True)
    first = preview.for_build(rebased).lock
    assert preview.for_build(rebased).lock == first
    assert (len(earlier), files(tmp_path)) == (1, {})


def test_a_preview_from_recorded_facts_is_made_again_once_the_base_is_here(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    inventories = [Inventoried.RECORDED, Inventoried.READ]
    make = store.make_lock

    def make_lock(*given: object, **more: object) -> Lock:
        lock = make(*given, **more)  # type: ignore[arg-type]
        return replace(lock, base=replace(lock.base, inventory=inventories[len(earlier) - 1]))

    monkeypatch.setattr(store, "make_lock", make_lock)
    monkeypatch.setattr(store, "contradictions", lambda *_: [])
    preview, here = locks(tmp_path, Policy.PREVIEW), PresentBase(tmp_path / "base.sif", "sha256:00")
    assert preview.for_build(recipe).lock.base.inventory is Inventoried.RECORDED
    for _ in range(2):
        assert preview.for_build(recipe, here).lock.base.inventory == "read"
    assert len(earlier) == 2


def test_each_architecture_has_its_lock_in_one_file_and_a_stale_one_stays(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make = store.make_lock

    def make_lock(uv: object, asked: Recipe, *given: object, **more: object) -> Lock:
        lock = make(uv, asked, *given, **more)  # type: ignore[arg-type]
        return replace(lock, base=replace(lock.base, architecture=architecture_of(asked)))

    monkeypatch.setattr(store, "make_lock", make_lock)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    update, strict = locks(tmp_path, Policy.UPDATE), locks(tmp_path, Policy.LOCKED)
    arm = for_architecture(recipe, "aarch64")
    update.for_build(recipe)
    assert update.current(arm) is None
    with pytest.raises(CheckFailed, match="has no lock for aarch64") as caught:
        strict.require(arm)
    assert (caught.value.code, caught.value.fix) == ("no-lock", "Run `ctk lock small --arch aarch64`.")
    stale = update.for_build(arm).lock
    assert earlier == [None, None], "versions of another architecture are no preference"
    changed = replace(recipe, packages=("timm",))
    update.for_build(changed)
    path = update.path(recipe)
    assert load_lock(path, "aarch64") == stale == strict.for_build(arm).lock
    with pytest.raises(CheckFailed, match="lock of small for aarch64 is out of date") as caught:
        strict.require(for_architecture(changed, "aarch64"))
    assert caught.value.code == "stale-lock"
    assert update.find(changed) is not None


def test_other_section_that_is_out_of_date_or_edited_is_a_warning(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None]
) -> None:
    strict = locks(tmp_path, Policy.UPDATE)
    assert strict.judge_others(recipe, ("x86_64",)) == ()
    path = tmp_path / "defs/small.lock.toml"
    arm = replace(SMALL, base=replace(SMALL.base, architecture="aarch64"))
    write_lock(replace(arm, input=input_hash(recipe, None, None)), path)
    assert strict.judge_others(recipe, ("x86_64",)) == ()
    write_lock(arm, path)
    (stale,) = strict.judge_others(recipe, ("x86_64",))
    assert (stale.code, stale.severity, stale.fix) == ("stale-section", "warning", "ctk lock small --arch aarch64")
    assert stale.message == f"the section for aarch64 of {path} is out of date"
    assert strict.judge_others(recipe, ("x86_64", "aarch64")) == ()
    strict.for_build(recipe)
    assert strict.judge_others(recipe, ("x86_64",)) == (stale,), "the update of one keeps the other"
    path.write_text(path.read_text().replace("[aarch64]\ncontent", "[aarch64]\n# mine\ncontent"))
    (edited,) = strict.judge_others(recipe, ("x86_64",))
    assert (edited.code, edited.severity) == ("refused-section", "warning")
    assert "was edited by hand" in edited.message


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_refusal_names_the_command_for_an_architecture_that_target_does_not_name(
    tmp_path: Path, recipe: Recipe, earlier: list[Lock | None], arch: str
) -> None:
    """`ctk lock small` would lock for aarch64 only: [target] says so."""
    aimed = replace(recipe, target=Target(architectures=("aarch64",)))
    with pytest.raises(CheckFailed) as caught:
        locks(tmp_path, Policy.LOCKED).for_build(for_architecture(aimed, arch))
    assert (caught.value.code, caught.value.fix) == ("no-lock", f"Run `ctk lock small --arch {arch}`.")
