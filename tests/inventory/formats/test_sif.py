"""SIF files: their tables and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, squash, system, write_sif
from tests.inventory.one_image import check, claimed, layer
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.sif import DataType, PartitionType, read_sif
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("value", [(1 << 63) - 1, -1, 1 << 40, 1 << 20])
@pytest.mark.parametrize("at", [88, 96], ids=["descriptors", "offset"])
def test_sif_with_implausible_tables_is_refused(tmp_path: Path, at: int, value: int) -> None:
    image = claimed(write_sif(tmp_path / "x.sif", [system(b"hsqs" * 2000)]), at, "<q", value)
    with pytest.raises(WrongInput, match="damaged"):
        read_sif(image)


@pytest.mark.parametrize("value", [(1 << 63) - 1, -1, 1 << 40])
@pytest.mark.parametrize("at", [128 + 17, 128 + 25], ids=["offset", "size"])
def test_sif_with_partition_outside_file_is_refused(tmp_path: Path, at: int, value: int) -> None:
    image = claimed(write_sif(tmp_path / "x.sif", [system(b"hsqs" * 2000)]), at, "<q", value)
    with pytest.raises(WrongInput, match="damaged"):
        open_image(image)


@pytest.mark.programs
def test_a_flat_sif(directory: Path, tmp_path: Path) -> None:
    squashed = squash(directory, tmp_path / "image.squashfs").read_bytes()
    definition = b"Bootstrap: localimage\n"
    parts = [Part(0x4001, definition), Part(0x4006, b'{"schema": "ctk/1"}', name="ctk.json"), system(squashed)]
    image = write_sif(tmp_path / "image.sif", parts)
    sif = read_sif(image)
    assert sif.architecture == "amd64"
    assert sif.definition() == "Bootstrap: localimage\n"
    assert sif.json_object("ctk.json") == {"schema": "ctk/1"}
    assert sif.json_object("other.json") is None
    partition = sif.of_type(DataType.PARTITION)[0].partition
    assert partition is not None
    assert partition.type is PartitionType.PRIMARY_SYSTEM
    with open_image(image) as rootfs:
        assert rootfs.form == "flat SIF"
        check(rootfs)


@pytest.mark.programs
def test_a_data_partition_is_no_layer(tmp_path: Path) -> None:
    base = layer(tmp_path, "base", {"usr/x": "base"})
    data = Part(0x4004, layer(tmp_path, "data", {"usr/x": "data"}), partition_type=3)
    with open_image(write_sif(tmp_path / "image.sif", [system(base), data])) as rootfs:
        assert rootfs.read("/usr/x") == b"base"
        assert rootfs.form == "flat SIF"


@pytest.mark.programs
def test_overlay_of_another_group_is_no_layer(tmp_path: Path) -> None:
    base, other = layer(tmp_path, "base", {"usr/x": "base"}), layer(tmp_path, "other", {"usr/x": "other"})
    foreign = Part(0x4004, other, partition_type=4, group=2)
    with open_image(write_sif(tmp_path / "image.sif", [system(base), foreign])) as rootfs:
        assert rootfs.read("/usr/x") == b"base"
        assert rootfs.form == "flat SIF"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (system(b"?" * 4096, file_system=5), "encrypted"),
        (system(b"?" * 4096, file_system=6), "encrypted"),
        (system(b"?" * 4096, file_system=2), "ext3"),
        (system(b"?" * 4096), "magic number is missing"),
        (Part(0x400A, b"{}"), "OCI-SIF"),
        (Part(0x4001, b"Bootstrap: x"), "no system partition"),
    ],
)
def test_unreadable_sif_error_has_reason(tmp_path: Path, part: Part, words: str) -> None:
    with pytest.raises(WrongInput, match=words):
        open_image(write_sif(tmp_path / "image.sif", [part]))


@pytest.mark.programs
def test_truncated_sif_is_refused(directory: Path, tmp_path: Path) -> None:
    squashed = squash(directory, tmp_path / "image.squashfs").read_bytes()
    image = write_sif(tmp_path / "image.sif", [system(squashed)])
    image.write_bytes(image.read_bytes()[:-5000])
    with pytest.raises(WrongInput, match="but the file has") as caught:
        open_image(image)
    assert caught.value.fix is not None
    assert "interrupted" in caught.value.fix
