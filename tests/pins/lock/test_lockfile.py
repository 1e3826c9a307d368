"""The lock file: a section per architecture, each read back as it was written and never silently edited."""

from __future__ import annotations

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
    assert write_lock(SMALL, path)
    assert not write_lock(SMALL, path)
    assert write_lock(ARM, path)
    assert not write_lock(SMALL, path)


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
    write_lock(ARM, path)
    assert load_lock(path, "aarch64") == ARM
    kept = load_lock(path, "x86_64")
    assert kept == SMALL if old.startswith("recipe") else locked_architectures(path) == ("aarch64",)


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
