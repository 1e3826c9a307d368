"""A SIF made from another: what is read back is what was kept and what was written."""

from __future__ import annotations

import itertools
import os
import random
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.making import Part, overlay, system, write_sif
from toolkit.inventory.formats.sif import DataType, Descriptor, FileSystem, Partition, PartitionType, read_sif
from toolkit.inventory.formats.sif_edit import NewObject, copy_base, edit_sif
from toolkit.support.errors import WrongInput

LAYER = Partition(FileSystem.SQUASHFS, PartitionType.OVERLAY, "amd64")
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
PARTS = st.one_of(
    st.builds(Part, st.sampled_from([0x4001, 0x4005, 0x4006, 0x4007, 0x4009]), st.binary(max_size=5000), NAMES),
    st.builds(overlay, st.binary(min_size=1, max_size=5000)),
)
CONTENT = st.binary(max_size=9000)
NEW = st.one_of(
    st.builds(NewObject, st.sampled_from([DataType.DEFINITION, DataType.GENERIC_JSON, DataType.SBOM]), NAMES, CONTENT),
    st.builds(lambda name, content: NewObject(DataType.PARTITION, name, content, partition=LAYER), NAMES, CONTENT),
)


def keep_all(_descriptor: Descriptor) -> bool:
    return False


def header(image: Path) -> tuple[bytes, int, int, int, int]:
    """The UUID, the free and all descriptors, where data begins, and its size."""
    start = image.read_bytes()[:128]
    free, total, _, _, data_at, size = struct.unpack_from("<6q", start, 80)
    return start[48:64], free, total, data_at, size


@given(st.lists(PARTS, max_size=12), st.lists(NEW, max_size=6), st.sets(st.integers(1, 13)), st.booleans())
def test_edited_sif_reads_back_what_was_kept_and_added(
    parts: list[Part], new: list[NewObject], dropped: set[int], as_files: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        image = write_sif(directory / "x.sif", [system(b"hsqs" * 100), *parts])
        before = read_sif(image)
        contents = {found.id: before.read(found) for found in before.descriptors}
        launch, uuid = image.read_bytes()[:32], header(image)[0]
        dropped -= {1}
        add = [in_file(directory, number, one) if as_files else one for number, one in enumerate(new)]

        edit_sif(image, drop=lambda found: found.id in dropped, add=add)

        after = read_sif(image)
        kept = [found for found in before.descriptors if found.id not in dropped]
        numbers = {found.id for found in kept}
        assert [found for found in after.descriptors if found in kept] == kept
        assert all(after.read(found) == contents[found.id] for found in kept)
        written = [found for found in after.descriptors if found.id not in numbers]
        assert sorted((found.data_type, found.name, after.read(found), found.group) for found in written) == sorted(
            (one.data_type, one.name, content_of(one), 1) for one in new
        )
        layers = [one.name for one in new if one.partition]
        assert [found.name for found in written if found.partition] == layers  # the order of the mounts
        first = min((found.id for found in written if found.partition), default=99)
        assert all(found.id < first for found in kept if found.partition)
        assert all(found.offset % 4096 == 0 for found in written if found.partition)
        spans = sorted((found.offset, found.offset + found.size) for found in after.descriptors)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
        new_uuid, free, total, data_at, size = header(image)
        assert (image.read_bytes()[:32], total) == (launch, 48)
        assert new_uuid != uuid
        assert free == total - len(after.descriptors)
        assert image.stat().st_size == data_at + size == max(end for _, end in spans)


def in_file(directory: Path, number: int, new: NewObject) -> NewObject:
    path = directory / str(number)
    path.write_bytes(content_of(new))
    return NewObject(new.data_type, new.name, path, new.group, new.partition)


def content_of(new: NewObject) -> bytes:
    return new.content if isinstance(new.content, bytes) else new.content.read_bytes()


def test_edit_sif_refuses_more_layers_than_descriptors(tmp_path: Path) -> None:
    image = write_sif(tmp_path / "x.sif", [Part(0x4001, b"x"), system(b"hsqs"), *[overlay(b"hsqs")] * 45])
    before = image.read_bytes()
    layers = [NewObject(DataType.PARTITION, f"ctk-layer-{number}", b"hsqs", partition=LAYER) for number in range(2)]
    with pytest.raises(WrongInput, match="48") as error:
        edit_sif(image, drop=lambda found: found.id == 1, add=layers)
    assert "--flat" in (error.value.fix or "")
    assert image.read_bytes() == before


def test_edit_sif_refuses_a_damaged_base(tmp_path: Path) -> None:
    image = write_sif(tmp_path / "x.sif", [system(b"hsqs" * 2000)])
    with image.open("r+b") as file:
        file.truncate(33000)
    with pytest.raises(WrongInput, match="damaged"):
        edit_sif(image, drop=keep_all, add=[])


@pytest.mark.parametrize("way", ["copy_file_range", "sendfile", "empty", "missing"])
def test_copied_base_is_equal_and_keeps_holes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    content = random.Random(4).randbytes(100_000)  # noqa: S311
    with base.open("wb") as file:
        file.write(content)
        file.seek(40 << 20)
        file.write(content)
        file.truncate(60 << 20)

    def refused(*_arguments: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    def nothing(*_arguments: object) -> int:
        return 0

    if way == "missing":
        monkeypatch.delattr(os, "copy_file_range")
    elif way != "copy_file_range":
        monkeypatch.setattr(os, "copy_file_range", refused if way == "sendfile" else nothing)
    seen: list[tuple[int, int]] = []
    copy_base(base, out, lambda done, size: seen.append((done, size)))
    assert out.read_bytes() == base.read_bytes()
    assert out.stat().st_blocks <= base.stat().st_blocks + 8
    assert seen == sorted(seen)
    assert seen[-1] == (60 << 20, 60 << 20)


def test_copy_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    base.write_bytes(b"x" * 10_000)

    def end(_done: int, _size: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        copy_base(base, out, end)
    assert not out.exists()


def test_copy_never_overwrites(tmp_path: Path) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    base.write_bytes(b"new")
    out.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        copy_base(base, out)
    assert out.read_bytes() == b"old"


def test_copy_of_a_missing_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="cannot read"):
        copy_base(tmp_path / "none", tmp_path / "out")
    assert not (tmp_path / "out").exists()
