"""The header and the descriptors of a SIF file, read from the file itself.

Source of the format: apptainer/sif, pkg/sif/sif.go and pkg/sif/descriptor.go (little endian, packed).
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

_LAUNCH_SIZE = 32
_MAGIC = b"SIF_MAGIC\0"
# launch script, magic, version, architecture, uuid, created, modified,
# descriptors free, total, offset, size, data offset, data size
HEADER = struct.Struct("<32s10s3s3s16s8q")
# data type, used, id, group, link, offset, size, size with padding, created, modified, uid, gid, name, extra
DESCRIPTOR = struct.Struct("<i?III7q128s384s")
PARTITION = struct.Struct("<ii3s")
SBOM_FORMAT = struct.Struct("<i")
CYCLONEDX_JSON = 1
GROUP_MARK = 0xF0000000  # set in each group number
_MAX_DESCRIPTORS = 4096  # apptainer itself makes room for 48

ARCHITECTURES = {
    b"01": "386", b"02": "amd64", b"03": "arm", b"04": "arm64", b"05": "ppc64", b"06": "ppc64le", b"07": "mips",
    b"08": "mipsle", b"09": "mips64", b"10": "mips64le", b"11": "s390x", b"12": "riscv64", b"13": "loong64",
}  # fmt: skip


class DataType(IntEnum):
    """What a data object is. `apptainer sif add --datatype N` counts from 1: N is the low byte of these."""

    DEFINITION = 0x4001
    ENVIRONMENT = 0x4002
    LABELS = 0x4003
    PARTITION = 0x4004
    SIGNATURE = 0x4005
    GENERIC_JSON = 0x4006
    GENERIC = 0x4007
    CRYPTOGRAPHIC_MESSAGE = 0x4008
    SBOM = 0x4009
    OCI_ROOT_INDEX = 0x400A
    OCI_BLOB = 0x400B


class FileSystem(IntEnum):
    """What a partition is formatted as."""

    SQUASHFS = 1
    EXT3 = 2
    IMMUTABLE_OBJECTS = 3
    RAW = 4
    ENCRYPTED_SQUASHFS = 5
    GOCRYPTFS_SQUASHFS = 6


class PartitionType(IntEnum):
    """What a partition is for. Only overlays (4) are mounted over the system; data (3) is not."""

    SYSTEM = 1
    PRIMARY_SYSTEM = 2
    DATA = 3
    OVERLAY = 4


@dataclass(frozen=True, slots=True)
class Partition:
    """The part of a descriptor that only partitions have; numbers that ctk does not know stay numbers."""

    file_system: FileSystem | int
    type: PartitionType | int
    architecture: str


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One data object: `offset` and `size` in bytes from the start of the file; `created` in seconds since 1970."""

    id: int
    data_type: DataType | int
    group: int
    link: int
    offset: int
    size: int
    name: str
    partition: Partition | None
    created: int = 0


@dataclass(frozen=True, slots=True)
class Sif:
    """A SIF file: its architecture as Go names it ("amd64"), its UUID in hexadecimal, and its data objects."""

    path: Path
    architecture: str
    descriptors: tuple[Descriptor, ...]
    uuid: str = ""

    def of_type(self, data_type: DataType) -> tuple[Descriptor, ...]:
        """The data objects of one type, in the order of the file."""
        return tuple(found for found in self.descriptors if found.data_type == data_type)

    def read(self, descriptor: Descriptor, limit: int = 16 << 20) -> bytes:
        """The content of a data object. Raises WrongInput if it is larger than `limit` bytes."""
        if descriptor.size > limit:
            raise WrongInput(
                f"{self.path}: data object {descriptor.id} is {descriptor.size} bytes, more than ctk reads",
                code="corrupt-image",
            )
        with self.path.open("rb") as file:
            file.seek(descriptor.offset)
            return file.read(descriptor.size)

    def definition(self) -> str | None:
        """The definition file that the image was built from, or None if it carries none."""
        found = self.of_type(DataType.DEFINITION)
        return self.read(found[0]).decode(errors="replace") if found else None

    def json_object(self, name: str) -> dict[str, Any] | None:
        """The generic JSON object called `name` ("ctk.json"); the last one, as it was added latest."""
        found = [descriptor for descriptor in self.of_type(DataType.GENERIC_JSON) if descriptor.name == name]
        if not found:
            return None
        try:
            content = json.loads(self.read(found[-1]))
        except (ValueError, RecursionError) as error:
            raise WrongInput(f"{self.path}: its object {name} is not JSON", code="corrupt-image") from error
        return content if isinstance(content, dict) else None


def is_sif(start: bytes) -> bool:
    """Whether a file that begins with these bytes (at least 42) is a SIF."""
    return start[_LAUNCH_SIZE : _LAUNCH_SIZE + len(_MAGIC)] == _MAGIC


def read_sif(path: Path) -> Sif:
    """Read the header and all descriptors of a SIF file.

    Raises WrongInput if it is truncated, or where its numbers cannot be true.
    """
    try:
        with path.open("rb") as file:
            return _read(path, file)
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error


def _read(path: Path, file: IO[bytes]) -> Sif:
    file_size = file.seek(0, 2)
    file.seek(0)
    start = file.read(HEADER.size)
    if not is_sif(start):
        raise WrongInput(f"{path} is not a SIF image")
    if len(start) < HEADER.size:
        raise _corrupt(path, "its header is truncated")
    _, _, version, architecture, uuid, _, _, _, total, offset, _, _, _ = HEADER.unpack(start)
    if version != b"01\0":
        raise WrongInput(f"{path} uses SIF version {_text(version)!r}; ctk reads version 01", code="foreign-image")
    if not 0 <= total <= _MAX_DESCRIPTORS or not 0 <= offset <= file_size - total * DESCRIPTOR.size:
        raise _corrupt(path, "its table of data objects is outside the file")
    file.seek(offset)
    table = file.read(total * DESCRIPTOR.size)
    if len(table) < total * DESCRIPTOR.size:
        raise _corrupt(path, "its table of data objects is truncated")
    descriptors = tuple(as_descriptor(fields) for fields in DESCRIPTOR.iter_unpack(table) if fields[1])
    for descriptor in descriptors:
        end = descriptor.offset + descriptor.size
        if descriptor.offset < 0 or descriptor.size < 0 or end > file_size:
            raise _corrupt(
                path,
                f"data object {descriptor.id} should end at byte {end}, but the file has {file_size}",
                fix="Download or build it again: the copy was interrupted, or the disk was full.",
            )
    return Sif(path, ARCHITECTURES.get(architecture.rstrip(b"\0"), "unknown"), descriptors, uuid.hex())


def as_descriptor(fields: tuple[Any, ...]) -> Descriptor:
    """A data object from the fields of its entry in the table."""
    data_type, _, number, group, link, offset, size, _, created, _, _, _, name, extra = fields
    partition = None
    if data_type == DataType.PARTITION:
        file_system, purpose, architecture = PARTITION.unpack_from(extra)
        partition = Partition(
            _known(FileSystem, file_system),
            _known(PartitionType, purpose),
            ARCHITECTURES.get(architecture.rstrip(b"\0"), "unknown"),
        )
    return Descriptor(
        number,
        _known(DataType, data_type),
        group & ~GROUP_MARK,
        link & ~GROUP_MARK,
        offset,
        size,
        _text(name),
        partition,
        created,
    )


def _known(kind: type[IntEnum], number: int) -> Any:
    try:
        return kind(number)
    except ValueError:
        return number


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode(errors="replace")


def _corrupt(path: Path, reason: str, fix: str | None = None) -> WrongInput:
    return WrongInput(f"{path} is damaged: {reason}", fix=fix, code="corrupt-image")
