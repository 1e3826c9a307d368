"""The lock file: a section per architecture, each read back as it was written and never silently edited."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from tests.examples import examples
from tests.pins.locks import ARM, SHA, SMALL, locks
from toolkit.pins.lock.lockfile import dump_locks, load_lock, locked_architectures, write_lock
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.lock.model import Lock

BOTH = ("aarch64", "x86_64")


def on(lock: Lock, architecture: str) -> Lock:
    return replace(lock, recipe="x", base=replace(lock.base, architecture=architecture))


@examples(150)
@given(amd=locks, arm=locks)
def test_what_is_read_is_what_was_written(tmp_path_factory: pytest.TempPathFactory, amd: Lock, arm: Lock) -> None:
    amd, arm = on(amd, "x86_64"), on(arm, "aarch64")
    path = tmp_path_factory.mktemp("lock") / "x.lock.toml"
    path.write_text(dump_locks(amd, arm), encoding="utf-8")
    again = [load_lock(path, architecture) for architecture in ("x86_64", "aarch64")]
    assert again == [amd, arm]
    assert dump_locks(amd, arm) == dump_locks(arm, amd) == path.read_text(encoding="utf-8")


@examples(50)
@given(amd=locks, arm=locks, other=locks)
def test_writing_one_section_keeps_the_other_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, amd: Lock, arm: Lock, other: Lock
) -> None:
    amd, arm, other = on(amd, "x86_64"), on(arm, "aarch64"), on(other, "x86_64")
    path = tmp_path_factory.mktemp("lock") / "x.lock.toml"
    write_lock(amd, path)
    write_lock(arm, path)
    before = section(path, "aarch64")
    write_lock(other, path)
    assert section(path, "aarch64") == before
    assert (load_lock(path, "x86_64"), load_lock(path, "aarch64")) == (other, arm)
    assert locked_architectures(path) == BOTH


def section(path: Path, architecture: str) -> str:
    """A section's text: from its header to the next one."""
    return path.read_text(encoding="utf-8").partition(f"\n[{architecture}]\n")[2].partition("\n[x86_64]\n")[0]


def test_lock_is_written_only_if_changed(tmp_path: Path) -> None:
    path = tmp_path / "defs" / "small.lock.toml"
    for lock, written in ((SMALL, True), (SMALL, False), (ARM, True), (SMALL, False)):
        before = path.stat().st_ino if path.exists() else None
        assert write_lock(lock, path) == ()
        assert (path.stat().st_ino != before) is written
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_file_without_the_section_has_no_lock_for_it(tmp_path: Path) -> None:
    path = tmp_path / "small.lock.toml"
    assert load_lock(path, "x86_64") is None
    write_lock(ARM, path)
    assert load_lock(path, "x86_64") is None
    assert load_lock(path, "aarch64") == ARM


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version = "1.0.3"', 'version = "1.0.4"'),
        ("# Protected packages of the base.", "# Protected packages of the base!"),
        ('"torch==2.5.1+cu124"', '"torch==2.5.1+cu121"'),
        ("packages = [", "packages = [ "),
        ('recipe = "small"', 'recipe = "large"'),
        ("[x86_64", "[ppc64le"),
    ],
)
def test_edited_section_is_refused_and_the_other_is_not(tmp_path: Path, old: str, new: str) -> None:
    text = dump_locks(SMALL)
    assert old in text
    path = tmp_path / "small.lock.toml"
    path.write_text(text.replace(old, new))
    architecture = "ppc64le" if "ppc64le" in new else "x86_64"
    with pytest.raises(WrongInput, match="edited by hand") as caught:
        load_lock(path, architecture)
    assert caught.value.fix is not None
    assert "ctk lock small" in caught.value.fix
    assert f"--arch {architecture}" in caught.value.fix
    edited = path.read_text().partition(f"\n[{architecture}]\n")[2]
    assert write_lock(ARM, path) == ()
    assert load_lock(path, "aarch64") == ARM
    assert path.read_text().endswith(f"\n[{architecture}]\n{edited}"), "kept, and refused where it is used"
    if old.startswith("recipe"):
        assert load_lock(path, "x86_64") == SMALL
        return
    with pytest.raises(WrongInput, match="edited by hand"):
        load_lock(path, architecture)


MARKERS = "<<<<<<< ours\n{0}=======\n{0}>>>>>>> theirs\n"


@pytest.mark.parametrize("where", ["x86_64", "aarch64", "both"])
def test_sections_that_a_conflict_made_unreadable_are_named_when_the_file_is_written(
    tmp_path: Path, where: str
) -> None:
    path = tmp_path / "small.lock.toml"
    line = "# Protected packages of the base.\n"
    head, arm, amd = (
        dump_locks(SMALL, ARM).partition("\n[aarch64]\n")[0],
        *(dump_locks(lock).partition('recipe = "small"\n')[2] for lock in (ARM, SMALL)),
    )
    arm = arm.replace(line, MARKERS.format(line)) if where != "x86_64" else arm
    amd = amd.replace(line, MARKERS.format(line)) if where != "aarch64" else amd
    path.write_text(f"{head}{arm}{amd}")
    with pytest.raises(WrongInput, match="is not TOML") as caught:
        load_lock(path, "x86_64")
    assert (caught.value.code, caught.value.fix) == ("wrong-lock", "`ctk lock small` regenerates it.")
    assert write_lock(SMALL, path) == (() if where == "x86_64" else ("aarch64",))
    assert load_lock(path, "x86_64") == SMALL
    assert load_lock(path, "aarch64") == (ARM if where == "x86_64" else None)


def test_section_that_stands_twice_after_a_merge_is_never_chosen_silently(tmp_path: Path) -> None:
    path = tmp_path / "small.lock.toml"
    arm = dump_locks(ARM).partition('recipe = "small"\n')[2]
    path.write_text(f"{dump_locks(SMALL)}{arm}{arm}")
    assert write_lock(SMALL, path) == ("aarch64",)


def test_lock_that_is_not_utf_8_is_refused_with_its_fix_and_regenerated(tmp_path: Path) -> None:
    path = tmp_path / "small.lock.toml"
    path.write_bytes(dump_locks(SMALL, ARM).encode().replace(b"# Packages of the base.", b"# \xff", 1))
    with pytest.raises(WrongInput, match="not UTF-8 text") as caught:
        load_lock(path, "x86_64")
    assert (caught.value.code, caught.value.fix) == ("wrong-lock", "`ctk lock small` regenerates it.")
    assert write_lock(SMALL, path) == ("aarch64",)


def test_directory_in_the_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.lock.toml"
    path.mkdir()
    with pytest.raises(WrongInput, match="Is a directory") as caught:
        load_lock(path, "x86_64")
    assert caught.value.code == "unreadable-lock"
    assert "remove it" in str(caught.value.fix)


def test_sections_written_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "small.lock.toml"
    again = [replace(lock, exclude_newer=f"2021-03-0{day}") for day in range(1, 6) for lock in (SMALL, ARM)]
    with ThreadPoolExecutor(4) as pool:
        for lost in pool.map(lambda lock: write_lock(lock, path), again):
            assert lost == ()
            assert load_lock(path, "x86_64") or load_lock(path, "aarch64")
    assert locked_architectures(path) == BOTH
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_lock_file_of_a_writer_that_was_killed_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "small.lock.toml"
    (tmp_path / ".small.lock.toml.lock").touch(mode=0o600)
    write_lock(SMALL, path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("text", ["", "schema = 1\n", 'schema = "ctk.lock/9"\n', "recipe =\n", "\x00"])
def test_invalid_lock_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.lock.toml"
    path.write_text(text)
    with pytest.raises(WrongInput):
        load_lock(path, "x86_64")


def test_file_with_one_lock_and_no_sections_is_of_an_earlier_ctk(tmp_path: Path) -> None:
    path = tmp_path / "x.lock.toml"
    path.write_text(f'schema = "ctk.lock/1"\ncontent = "sha256:{SHA}"\nrecipe = "x"\n')
    with pytest.raises(WrongInput, match="was written by an earlier ctk") as caught:
        load_lock(path, "x86_64")
    assert (caught.value.code, caught.value.fix) == ("wrong-lock", "Run `ctk lock x`.")
    write_lock(replace(SMALL, recipe="x"), path)
    assert load_lock(path, "x86_64") is not None
