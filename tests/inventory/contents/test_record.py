"""RECORD files and the hashes in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.inventory.contents.test_interpreters import SITE
from tests.inventory.making import distribution, fill, inventory_of, python_files
from toolkit.inventory.contents.record import hash_of, read_record
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path


def test_records_and_hashes(tmp_path: Path) -> None:
    fill(tmp_path, {**python_files(), **distribution("a", "1", SITE, {"a/__init__.py": "x = 1\n", "a/b,c.py": ""})})
    found = inventory_of(tmp_path).distributions[0]
    with open_image(tmp_path) as rootfs:
        record = read_record(rootfs, found)
        assert record[f"/{SITE}/a/__init__.py"] == hash_of(rootfs, f"/{SITE}/a/__init__.py")
        assert hash_of(rootfs, "/nothing") is None
