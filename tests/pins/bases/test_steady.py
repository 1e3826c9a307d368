"""A base that changes while it is locked is noticed, whoever changes it and however."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.pins import store
from toolkit.pins.bases import registry
from toolkit.pins.bases.steady import PresentBase, require_unchanged, state_of, unchanged
from toolkit.pins.store import Locks
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed, ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def base(tmp_path: Path) -> Base:
    """A sandbox behind a link: `link -> real`, with Python in it."""
    for name in ("real", "other"):
        library = tmp_path / name / "usr/lib/python3.12"
        library.mkdir(parents=True)
        (library / "os.py").write_text("import\n")
        (tmp_path / name / ".singularity.d").mkdir()
        (tmp_path / name / "usr/bin").mkdir()
        (tmp_path / name / "usr/bin/python3.12").touch()
    (tmp_path / "link").symlink_to("real")
    return Base("mine", "localimage", str(tmp_path / "link"))


def set_back(directory: Path) -> None:
    file = directory / "real/usr/lib/python3.12/os.py"
    before = file.stat()
    file.write_text("IMPORT\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def relinked(directory: Path) -> None:
    (directory / "link").unlink()
    (directory / "link").symlink_to("other")


def relinked_and_back(directory: Path) -> None:
    relinked(directory)
    (directory / "link").rename(directory / "away")
    (directory / "link").symlink_to("real")


CHANGES: list[Callable[[Path], object]] = [
    set_back,
    relinked,
    relinked_and_back,
    lambda directory: (directory / "real").rename(directory / "gone"),
    lambda directory: (
        (directory / "real").rename(directory / "gone"),
        (directory / "other").rename(directory / "real"),
    ),
    lambda directory: (directory / "real/usr/new").touch(),
    lambda directory: (directory / "real/usr/bin/python3.12").unlink(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(base: Base, tmp_path: Path, change: Callable[[Path], object]) -> None:
    before = state_of(base)
    (tmp_path / "neighbour").touch()
    require_unchanged(before)
    change(tmp_path)
    with pytest.raises(CheckFailed, match=f"the base {tmp_path}/link changed") as caught:
        require_unchanged(before)
    assert caught.value.code == "base-changed"


def test_a_change_explains_a_failure_and_no_change_hides_none(base: Base, tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed), unchanged(state_of(base)):
        raise ProgramFailed("failed")
    before = state_of(base)
    (tmp_path / "real/new").touch()
    with pytest.raises(CheckFailed), unchanged(before):
        raise ProgramFailed("failed")
    with unchanged(state_of(Base("hub", "docker", "a/b:1"))):
        pass


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locks:
    """Locks without uv: what they are made of is not asked here."""
    monkeypatch.setattr("toolkit.pins.index.uv.open_uv", lambda _area: None)
    return Locks(tmp_path / "defs", tmp_path / "area", {}, lambda _text: None)


@pytest.mark.parametrize("change", CHANGES)
def test_no_lock_is_written_for_a_base_that_changed_while_it_was_made(
    base: Base, tmp_path: Path, locks: Locks, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    written: list[object] = []
    monkeypatch.setattr(store, "write_lock", lambda *_: written.append(1))
    monkeypatch.setattr(store, "make_lock", lambda *_, **__: change(tmp_path))
    with pytest.raises(CheckFailed, match="changed while ctk read it"):
        locks.for_build(Recipe("mine", tmp_path / "mine.toml", base, post="true"))
    assert written == []


def test_the_lock_has_the_digest_of_the_image_that_was_brought_and_not_of_a_tag_that_moved(
    base: Base, tmp_path: Path, locks: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "fetch_digest", lambda _reference: "sha256:moved")
    monkeypatch.setattr(store, "write_lock", lambda *_: None)
    monkeypatch.setattr(store, "make_lock", lambda _uv, _recipe, facts, **_: facts)
    recipe = Recipe("mine", tmp_path / "mine.toml", Base("hub", "docker", "a/b:1"), post="true")
    facts = locks.make(recipe, PresentBase(tmp_path / "real", "sha256:brought"))
    assert facts.digest == "sha256:brought"  # type: ignore[attr-defined]
