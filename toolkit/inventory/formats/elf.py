"""What a shared library requires of the loader: its DT_NEEDED, DT_RPATH and DT_RUNPATH, without reading all of it.

Source of the format: the System V ABI, chapters 4 and 5. A framework's library is up to a gigabyte; read here are its
headers and the few tables that they name, and every number in them is checked.

pyelftools was measured and not taken (0.33, 2026-11-22). The audit of a torch 2.5.1 image takes 0.47 s of CPU time with
it and 0.35 s without, 34 and 30 MiB (median of 15 on a loaded machine). It has no bounds for a hostile file: a name of
100 MB without an end took 27 s and 164 MiB, and a damaged library raised errors that are not its own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from toolkit.inventory.formats.rootfs import Rootfs

_HEADER_SIZE = 64
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _STRSZ, _SONAME, _RPATH, _RUNPATH = 1, 5, 10, 14, 15, 29
_MAX_HEADERS = 512
_MAX_DYNAMIC = 1 << 20
_LONGEST_TEXT = 1 << 16
_MAX_SECTION = 8 << 20
_MAX_ENTRIES = 4096
_FAT_BINARY = 0xBA55ED50
_CODE = {1: "compute", 2: "sm"}  # PTX, and binary code
_MAX_SYMBOL_NAMES = 1 << 20  # those of NVIDIA's libraries have a few KiB


@dataclass(frozen=True, slots=True)
class Dynamic:
    """What a library asks for: names of other libraries, and directories to search, as written (`$ORIGIN`).

    `soname` is "" if it has none. `rpath` is empty if there is a DT_RUNPATH: the loader then ignores DT_RPATH.
    """

    needed: tuple[str, ...] = ()
    soname: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    has_runpath: bool = False


def read_dynamic(rootfs: Rootfs, path: str) -> Dynamic | None:
    """The dynamic section of the ELF file at `path`; None if there is none, or it is damaged."""
    file = rootfs.open(path)
    if file is None:
        return None
    with file:
        try:
            return _dynamic(file)
        except (struct.error, ValueError):
            return None


def read_damage(rootfs: Rootfs, path: str) -> str | None:
    """Why the loader refuses a library: it is empty, or it ends before what its headers name; None if it does not.

    A file of another format is not judged.
    """
    size, file = rootfs.size(path), rootfs.open(path)
    if size is None or file is None:
        return None
    with file:
        start = file.read(4)
        if not start:
            return "is empty"
        if start != b"\x7fELF"[: len(start)]:
            return None
        if size < _HEADER_SIZE:
            return f"is truncated: it ends after {size} bytes, within its headers"
        try:
            file.seek(0)
            programs, number, sections, sections_number, _ = _header(file)
            table = _at(file, programs, 56 * number, 56 * _MAX_HEADERS)
            ends = [sum(struct.unpack_from("<8xQ16xQ", table, 56 * index)) for index in range(number)]
        except struct.error:
            return f"is truncated: it ends after {size} bytes, within its headers"
        except ValueError:
            return None
    end = max([*ends, sections + 64 * sections_number if sections else 0], default=0)
    return f"is truncated: it has {size} of {end} bytes" if size < end else None


def read_symbol_names(rootfs: Rootfs, path: str, pattern: re.Pattern[bytes]) -> frozenset[str]:
    """The names that `pattern` finds in the table of symbol names, of the symbols that a library has or wants."""
    file = rootfs.open(path)
    if file is None:
        return frozenset()
    with file:
        try:
            table = _table(file)
        except (struct.error, ValueError):
            return frozenset()
        if table is None or table.texts_size > _MAX_SYMBOL_NAMES:
            return frozenset()
        names = _at(file, table.texts, table.texts_size, _MAX_SYMBOL_NAMES)
    return frozenset(name.decode(errors="replace") for name in pattern.findall(names))


def read_only_data(rootfs: Rootfs, path: str) -> bytes:
    """The content of the section `.rodata` of an ELF file, where a compiler puts texts; empty if there is none."""
    file = rootfs.open(path)
    if file is None:
        return b""
    with file:
        try:
            place = _find_section(file, b".rodata")
            return _at(file, place[0], min(place[1], _MAX_SECTION), _MAX_SECTION) if place else b""
        except (struct.error, ValueError):
            return b""


def read_architectures(rootfs: Rootfs, path: str) -> tuple[str, ...]:
    """The GPU architectures of the code in an ELF file, as nvcc names them: those of its first fat binary.

    Each compilation leaves a fat binary with its code for every architecture. NVIDIA documents no headers: these are as
    nvcc 11.8 wrote them into libphi.so of paddlepaddle-gpu 2.6.2.
    """
    file = rootfs.open(path)
    if file is None:
        return ()
    with file:
        try:
            place = _find_section(file, b".nv_fatbin")
            return tuple(dict.fromkeys(_architectures(file, place[0]))) if place else ()
        except (struct.error, ValueError):
            return ()


def _architectures(file: IO[bytes], start: int) -> Iterator[str]:
    magic, _, header, size = struct.unpack("<IHHQ", _at(file, start, 16, 16))
    if magic != _FAT_BINARY:
        raise ValueError("not a fat binary")
    at, end = start + header, start + header + size
    for _ in range(_MAX_ENTRIES):
        if at >= end:
            return
        # kind, version, size of this header, size of the code, …, architecture
        kind, _, header, size, architecture = struct.unpack("<HHIQ12xI", _at(file, at, 32, 32))
        if header < 32:
            raise ValueError("entry without a header")
        if kind in _CODE:
            yield f"{_CODE[kind]}_{architecture}"
        at += header + size


def _header(file: IO[bytes]) -> tuple[int, ...]:
    """Offsets, entry sizes and numbers of the program and section headers, and the index of the section names."""
    start = file.read(_HEADER_SIZE)
    if start[:4] != b"\x7fELF" or start[4:6] != b"\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file, the only kind that frameworks use for GPU code")
    programs, sections, _, _, program_size, programs_number, section_size, sections_number, names = struct.unpack_from(
        "<QQIHHHHHH", start, 32
    )
    if program_size != 56 or section_size not in (0, 64) or programs_number > _MAX_HEADERS:
        raise ValueError("wrong header size")
    return programs, programs_number, sections, sections_number, names


def _at(file: IO[bytes], offset: int, size: int, limit: int) -> bytes:
    if not 0 <= size <= limit or offset >= 1 << 62:
        raise ValueError("implausible table size")
    try:
        file.seek(offset)
    except OSError as error:  # of a file in a sandbox: its file system has no files of that size
        raise ValueError("table offset out of range") from error
    return file.read(size)


class _Table(NamedTuple):
    """A dynamic section: its entries (tag, value), and where in the file its texts are."""

    entries: list[tuple[int, int]]
    texts: int
    texts_size: int


def _table(file: IO[bytes]) -> _Table | None:
    programs, number, *_ = _header(file)
    table = _at(file, programs, 56 * number, 56 * _MAX_HEADERS)
    # type, flags, offset, virtual address, physical address, size in the file, size in memory, alignment
    segments = [struct.unpack_from("<IIQQQQQQ", table, 56 * index) for index in range(number)]
    dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
    if dynamic is None:
        return None
    content = _at(file, dynamic[2], dynamic[5], _MAX_DYNAMIC)
    entries = list(struct.iter_unpack("<QQ", content[: len(content) // 16 * 16]))[:_MAX_ENTRIES]
    values = dict(entries)
    address = values.get(_STRTAB)
    loads = [segment for segment in segments if segment[0] == _LOAD]
    texts = next(
        (
            segment[2] + address - segment[3]
            for segment in loads
            if address and segment[3] <= address < segment[3] + segment[5]
        ),
        None,
    )
    if texts is None:
        raise ValueError("string table not found")
    return _Table(entries, texts, values.get(_STRSZ, 0))


def _dynamic(file: IO[bytes]) -> Dynamic | None:
    table = _table(file)
    if table is None:
        return None

    def texts(wanted: int) -> list[str]:
        places = (value for tag, value in table.entries if tag == wanted)
        return [_at(file, table.texts + place, 8192, _LONGEST_TEXT).partition(b"\0")[0].decode(errors="replace")
                for place in places]  # fmt: skip

    paths, run_paths = texts(_RPATH), texts(_RUNPATH)
    return Dynamic(
        needed=tuple(texts(_NEEDED)),
        soname="".join(texts(_SONAME)[:1]),
        rpath=() if run_paths else tuple(part for path in paths for part in path.split(":") if part),
        runpath=tuple(part for path in run_paths for part in path.split(":") if part),
        has_runpath=bool(run_paths),
    )


def _find_section(file: IO[bytes], wanted: bytes) -> tuple[int, int] | None:
    """Where in the file a section is, and its size."""
    _, _, sections, number, names = _header(file)
    table = _at(file, sections, 64 * min(number, _MAX_HEADERS), 64 * _MAX_HEADERS)
    # name, type, flags, address, offset, size, …
    headers = [struct.unpack_from("<IIQQQQ", table, 64 * index) for index in range(len(table) // 64)]
    if names >= len(headers):
        raise ValueError("section names not found")
    texts = _at(file, headers[names][4], headers[names][5], _MAX_DYNAMIC)
    for name, _, _, _, offset, size in headers:
        if texts[name : name + len(wanted) + 1] == wanted + b"\0":
            return offset, size
    return None
