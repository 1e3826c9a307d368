"""What a shared library asks of the loader: its DT_NEEDED, DT_RPATH and DT_RUNPATH, without reading the library.

Source of the format: the System V ABI, chapters 4 and 5. A framework's library is up to a gigabyte; read here are its
headers and the few tables that they name, and no number in them is believed unseen.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.inventory.rootfs import Rootfs

_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29
_MOST_HEADERS = 512
_MOST_DYNAMIC = 1 << 20
_LONGEST_TEXT = 1 << 16
_MOST_SECTION = 8 << 20


@dataclass(frozen=True, slots=True)
class Dynamic:
    """What a library asks for: names of other libraries, and folders to look into first (RUNPATH, else RPATH)."""

    needed: tuple[str, ...]
    search: tuple[str, ...]


def read_dynamic(rootfs: Rootfs, path: str) -> Dynamic | None:
    """The dynamic section of the ELF file at `path`; None where there is none, or it is damaged."""
    file = rootfs.open(path)
    if file is None:
        return None
    with file:
        try:
            return _dynamic(file)
        except (struct.error, ValueError):
            return None


def read_only_data(rootfs: Rootfs, path: str) -> bytes:
    """The content of the section `.rodata` of an ELF file, where a compiler puts texts; empty where there is none."""
    file = rootfs.open(path)
    if file is None:
        return b""
    with file:
        try:
            return _section(file, b".rodata")
        except (struct.error, ValueError):
            return b""


def _header(file: IO[bytes]) -> tuple[int, ...]:
    """Offsets, entry sizes and numbers of the program and section headers, and the index of the section names."""
    start = file.read(64)
    if start[:4] != b"\x7fELF" or start[4:6] != b"\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file: no framework's GPU library is any other")
    programs, sections, _, _, program_size, programs_number, section_size, sections_number, names = struct.unpack_from(
        "<QQIHHHHHH", start, 32
    )
    if program_size != 56 or section_size not in (0, 64) or programs_number > _MOST_HEADERS:
        raise ValueError("headers of a wrong size")
    return programs, programs_number, sections, sections_number, names


def _at(file: IO[bytes], offset: int, size: int, limit: int) -> bytes:
    if not 0 <= size <= limit or offset >= 1 << 62:
        raise ValueError("a table of an absurd size")
    file.seek(offset)
    return file.read(size)


def _dynamic(file: IO[bytes]) -> Dynamic | None:
    programs, number, *_ = _header(file)
    table = _at(file, programs, 56 * number, 56 * _MOST_HEADERS)
    # type, flags, offset, virtual address, physical address, size in the file, size in memory, alignment
    segments = [struct.unpack_from("<IIQQQQQQ", table, 56 * index) for index in range(number)]
    dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
    if dynamic is None:
        return None
    content = _at(file, dynamic[2], dynamic[5], _MOST_DYNAMIC)
    entries = list(struct.iter_unpack("<QQ", content[: len(content) // 16 * 16]))
    addresses = [value for tag, value in entries if tag == _STRTAB]
    loads = [segment for segment in segments if segment[0] == _LOAD]
    texts = next((s[2] + at - s[3] for at in addresses[:1] for s in loads if s[3] <= at < s[3] + s[5]), None)
    if texts is None:
        raise ValueError("its texts are nowhere")

    def text(offset: int) -> str:
        return _at(file, texts + offset, 8192, _LONGEST_TEXT).partition(b"\0")[0].decode(errors="replace")

    needed = tuple(text(value) for tag, value in entries[:4096] if tag == _NEEDED)
    paths = [(tag, text(value)) for tag, value in entries[:4096] if tag in (_RPATH, _RUNPATH)]
    # The loader ignores DT_RPATH where there is a DT_RUNPATH (ld.so(8)).
    run_path = any(tag == _RUNPATH for tag, _ in paths)
    search = [one for tag, found in paths if (tag == _RUNPATH) == run_path for one in found.split(":") if one]
    return Dynamic(needed, tuple(search))


def _section(file: IO[bytes], wanted: bytes) -> bytes:
    _, _, sections, number, names = _header(file)
    table = _at(file, sections, 64 * min(number, _MOST_HEADERS), 64 * _MOST_HEADERS)
    # name, type, flags, address, offset, size, …
    headers = [struct.unpack_from("<IIQQQQ", table, 64 * index) for index in range(len(table) // 64)]
    if names >= len(headers):
        raise ValueError("its section names are nowhere")
    texts = _at(file, headers[names][4], headers[names][5], _MOST_DYNAMIC)
    for name, _, _, _, offset, size in headers:
        if texts[name : name + len(wanted) + 1] == wanted + b"\0":
            return _at(file, offset, min(size, _MOST_SECTION), _MOST_SECTION)
    return b""
