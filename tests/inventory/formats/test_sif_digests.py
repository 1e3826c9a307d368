"""Damage to an image that holds its digests, object by object; tests/real/test_damaged_image.py does it with images."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, overlay, system, write_sif
from tests.schemas import check_document
from toolkit.inventory.formats import sif_digests
from toolkit.inventory.formats.sif import DESCRIPTOR, DataType, read_sif
from toolkit.inventory.formats.sif_digests import (
    OBJECT_NAME,
    digests_object,
    find_damage,
    partition_digests,
    remember_built,
    require_undamaged,
)
from toolkit.inventory.formats.sif_edit import NewObject, edit_sif
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

LAYER = f"ctk-layer-{'0' * 31}1"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A layered image with a record, and its digests."""
    layer = Part(0x4004, b"hsqs layer", LAYER, partition_type=4)
    parts = [Part(0x4001, b"Bootstrap: x"), system(b"hsqs base"), layer, Part(0x4006, b"{}", "ctk.json")]
    path = write_sif(tmp_path / "a.sif", parts)
    edit_sif(path, drop=lambda _found: False, add=[digests_object(path, {})])
    return path


def write(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def test_image_is_whole_after_copy_move_touch_and_additions(image: Path, tmp_path: Path) -> None:
    assert find_damage(image, None) is None
    copy = tmp_path / "copy.sif"
    shutil.copyfile(image, copy)
    os.utime(copy, (0, 0))
    assert find_damage(copy, None) is None
    edit_sif(copy, drop=lambda _found: False, add=[NewObject(DataType.GENERIC, "notes", b"mine")])
    edit_sif(copy, drop=lambda _found: False, add=[NewObject(DataType.SIGNATURE, "", b"signed")])
    assert find_damage(copy, None) is None
    edit_sif(copy, drop=lambda found: found.data_type == DataType.DEFINITION, add=[])
    assert find_damage(copy, None) is None, "who removes a definition has not damaged the image"
    edit_sif(copy, drop=lambda _found: False, add=[NewObject(DataType.GENERIC, "other", b"in its place")])
    assert find_damage(copy, None) is None


def test_every_changed_byte_of_an_object_is_found(image: Path) -> None:
    titles = {
        DataType.DEFINITION: "its object 1 (definition) does not",
        "": "the file system of its base does not",
        LAYER: f"its layer {LAYER} (1 of 1) does not",
        "ctk.json": "its object ctk.json does not",
        OBJECT_NAME: "its object",
    }
    for found in read_sif(image).descriptors:
        before = image.read_bytes()
        title = titles.get(found.name if found.name or found.partition else found.data_type)
        for at in (found.offset, found.offset + found.size // 2, found.offset + found.size - 2):
            write(image, at, bytes([before[at] ^ 0x20]))
            reason = find_damage(image, None)
            if found.name != OBJECT_NAME:
                assert reason == f"{title} have the content that was built"
            else:
                assert reason is not None or at == found.offset + found.size // 2
            image.write_bytes(before)


@pytest.mark.parametrize("number", range(5))
def test_lost_descriptor_is_damage(image: Path, number: int) -> None:
    write(image, 128 + number * DESCRIPTOR.size, bytes(5))
    assert find_damage(image, None) == "its table of data objects has lost entries"


@pytest.mark.parametrize(("number", "reason"), [(1, "data object 2 (without a name)"), (3, "data object 4 (ctk.json)")])
def test_changed_descriptor_is_damage(image: Path, number: int, reason: str) -> None:
    write(image, 128 + number * DESCRIPTOR.size + 25, struct.pack("<q", 1))  # its size
    assert find_damage(image, None) == f"{reason} is not there as it was built"


def test_table_of_zeros_is_damage_in_any_image(tmp_path: Path) -> None:
    image = write_sif(tmp_path / "foreign.sif", [system(b"hsqs base"), overlay(b"hsqs")])
    assert find_damage(image, None) is None
    write(image, 128, bytes(2 * DESCRIPTOR.size))
    assert find_damage(image, None) == "its table of data objects has lost entries"


@pytest.mark.parametrize("at", [0, 49, 104, 112])
def test_changed_header_is_damage_but_for_its_uuid(image: Path, at: int) -> None:
    write(image, at, bytes([image.read_bytes()[at] ^ 1]))
    assert find_damage(image, None) == (None if at == 49 else "its header is not as it was built")


def test_truncated_image_is_refused_with_the_fix(image: Path) -> None:
    os.truncate(image, image.stat().st_size - 10)
    with pytest.raises(WrongInput, match="is damaged: data object 5 should end") as error:
        require_undamaged(image, None, "Copy it again.")
    assert (error.value.code, error.value.fix) == ("corrupt-image", "Copy it again.")


def test_image_without_digests_and_other_files_are_not_judged(tmp_path: Path) -> None:
    parts = [system(b"hsqs base"), Part(0x4006, b'{"schema": "ctk.digests/9"}', OBJECT_NAME)]
    assert find_damage(write_sif(tmp_path / "newer.sif", parts), None) is None
    assert find_damage(write_sif(tmp_path / "foreign.sif", parts[:1]), None) is None
    assert find_damage(tmp_path, None) is None


def test_image_that_lost_its_record_and_its_digests_at_once_is_damaged(image: Path) -> None:
    assert [found.name for found in read_sif(image).descriptors[3:]] == ["ctk.json", OBJECT_NAME]
    write(image, 128 + 3 * DESCRIPTOR.size, bytes(2 * DESCRIPTOR.size))
    assert find_damage(image, None) == "its table of data objects has lost entries", "its layer shows whose it is"


@pytest.mark.parametrize("number", [[], {}, "1", None])
def test_table_whose_numbers_are_none_is_damage(image: Path, number: object) -> None:
    table = json.loads(digests_object(image, {}).content)
    table["objects"][0]["id"] = number
    spoiled = NewObject(DataType.GENERIC_JSON, OBJECT_NAME, json.dumps(table).encode())
    edit_sif(image, drop=lambda found: found.name == OBJECT_NAME, add=[spoiled])
    assert find_damage(image, None) == f"its object {OBJECT_NAME} cannot be read"


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"schema": "ctk.digests/1", "objects": [{"id": 1}]}'])
def test_table_that_cannot_be_read_is_damage(tmp_path: Path, text: bytes) -> None:
    image = write_sif(tmp_path / "a.sif", [system(b"hsqs base"), Part(0x4006, text, OBJECT_NAME)])
    expected = None if text == b"{}" else f"its object {OBJECT_NAME} cannot be read"
    assert find_damage(image, None) == expected


def test_content_is_read_once_and_again_when_the_file_is_another(image: Path, tmp_path: Path) -> None:
    read: list[int] = []

    def check() -> int:
        read.clear()
        assert find_damage(image, tmp_path / "area/cache", lambda done, _size: read.append(done)) is None
        return len(read)

    remember_built(image, tmp_path / "area/cache")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "area", tmp_path / "area/cache")} == {0o700}
    assert check() == 0
    os.utime(image, (0, 0))
    assert check() == 4
    os.utime(image, (0, 0))  # ctime is another one: what was remembered in the tick of the change is not believed
    assert check() == 4


def test_image_is_on_the_disk_before_the_note_is(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        remember_built(image, tmp_path / "cache")
        assert find_damage(image, tmp_path / "cache") is None
    assert not (tmp_path / "cache/images").exists()
    (tmp_path / "link.sif").symlink_to(image)
    assert find_damage(tmp_path / "link.sif", tmp_path / "cache") is None
    assert len(list((tmp_path / "cache/images").iterdir())) == 1


def test_note_that_another_user_could_write_is_not_believed(image: Path, tmp_path: Path) -> None:
    remember_built(image, tmp_path / "cache")
    write(image, 32768, b"X")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sif_digests, "_name", lambda *_: "note")
        (tmp_path / "cache/images/note").touch(0o600)
        assert find_damage(image, tmp_path / "cache") is None
        (tmp_path / "cache/images").chmod(0o777)
        assert find_damage(image, tmp_path / "cache") is not None


def test_known_digests_are_taken_for_the_partitions_they_are_of(image: Path, tmp_path: Path) -> None:
    known = partition_digests(image, tmp_path / "cache", lambda _read: None)
    assert len(known) == 2
    assert LAYER in known
    told = digests_object(image, dict.fromkeys(known, "told")).content
    assert isinstance(told, bytes)
    assert told.count(b'"told"') == 2


def test_table_matches_its_schema(image: Path) -> None:
    document = read_sif(image).json_object(OBJECT_NAME)
    assert document is not None
    check_document(document)
