"""What a record says is compared with what is there."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.store.making import key_of, put
from toolkit.store.checking import Damaged, check_entry, read_entry
from toolkit.store.digests import Digests
from toolkit.store.store import Kind, Store

if TYPE_CHECKING:
    from pathlib import Path


def test_an_entry_is_whole_or_damaged(tmp_path: Path) -> None:
    entry = put(Store(tmp_path), "a")
    assert check_entry(tmp_path, Kind.LAYER, entry.key, Digests(None)) == entry
    entry.path.write_bytes(entry.path.read_bytes().swapcase())
    with pytest.raises(Damaged, match="hash"):
        check_entry(tmp_path, Kind.LAYER, entry.key, Digests(None))
    entry.path.write_bytes(b"")
    with pytest.raises(Damaged, match="size"):
        check_entry(tmp_path, Kind.LAYER, entry.key, Digests(None))
    with pytest.raises(FileNotFoundError):
        check_entry(tmp_path, Kind.LAYER, "0" * 64, Digests(None))


def test_an_entry_in_the_place_of_another(tmp_path: Path) -> None:
    """A base for one digest must not serve for another."""
    entry = put(Store(tmp_path), "a")
    shutil.copytree(entry.path.parent, tmp_path / "layers" / key_of("b"))
    shutil.copytree(tmp_path / "layers", tmp_path / "bases")
    for kind, key in ((Kind.LAYER, key_of("b")), (Kind.BASE, entry.key)):
        with pytest.raises(Damaged, match=r"entry\.json is not valid"):
            check_entry(tmp_path, kind, key, Digests(None))


def test_a_package_with_the_record_of_other_content(tmp_path: Path) -> None:
    """Whoever alters a package can alter its record as well, but not its key."""
    entry = put(Store(tmp_path), "six-1.whl", Kind.PACKAGE, text=b"right")
    record = entry.path.parent / "entry.json"
    record.write_text(record.read_text().replace(entry.digest, f"sha256:{key_of('wrong')}"))
    entry.path.write_bytes(b"wrong")
    with pytest.raises(Damaged, match="hash"):
        check_entry(tmp_path, Kind.PACKAGE, entry.key, Digests(None))


def test_reading_an_entry_does_not_read_its_content(tmp_path: Path) -> None:
    entry = put(Store(tmp_path), "a", unused=100)
    entry.path.chmod(0)
    record, last_use, size = read_entry(tmp_path, Kind.LAYER, entry.key)
    assert (record.file, record.about) == ("layer.sqfs", {"name": "a"})
    assert last_use == (entry.path.parent / "entry.json").stat().st_mtime
    assert 0 < size < 1 << 20
