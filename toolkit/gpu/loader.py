"""Where the dynamic loader of an image looks for libraries, and what it finds.

Source: ld.so(8): DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache, the default folders. The cache's format: glibc,
sysdeps/generic/dl-cache.h.
"""

from __future__ import annotations

import posixpath
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.gpu.facts import Loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.gpu.facts import Want
    from toolkit.inventory.model import Inventory
    from toolkit.inventory.rootfs import Rootfs

_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_LIMIT = 8 << 20
_CONFIGURATION_LIMIT = 1 << 20
_MOST_FILES = 64
_MULTIARCH = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "ppc64le": "powerpc64le-linux-gnu"}


@dataclass(frozen=True, slots=True)
class Loader:
    """The folders that every program of the image gets, by the way that leads to them; and its cache by soname."""

    rootfs: Rootfs
    library_path: tuple[str, ...]
    cache: dict[str, str]
    defaults: tuple[str, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders, in the loader's order, each once."""
        cached = dict.fromkeys(posixpath.dirname(path) for path in self.cache.values())
        return tuple(dict.fromkeys((*self.library_path, *cached, *self.defaults)))

    def find(self, want: Want, more: Iterable[str] = ()) -> Loaded:
        """Look for a library. `more` are folders that the framework adds by itself, searched last."""
        folders = tuple(dict.fromkeys((*want.search, *self.library_path, *more, *self.defaults)))
        path = self._first(want.soname, folders)
        stem = want.soname.partition(".so")[0]
        others = () if path else tuple(dict.fromkeys(self._same_stem(stem, (*folders, *self.folders))))
        return Loaded(want, path, others)

    def _first(self, soname: str, folders: Iterable[str]) -> str | None:
        for folder in folders:
            if self.rootfs.is_file(f"{folder}/{soname}"):
                return f"{folder}/{soname}"
        cached = self.cache.get(soname)
        return cached if cached and self.rootfs.is_file(cached) else None

    def _same_stem(self, stem: str, folders: Iterable[str]) -> Iterator[str]:
        pattern = re.compile(re.escape(stem) + r"\.so\.\d+(\.\d+)?$")
        for folder in dict.fromkeys(folders):
            yield from (f"{folder}/{name}" for name in self.rootfs.names(folder) if pattern.match(name))


def read_loader(rootfs: Rootfs, inventory: Inventory) -> Loader:
    """The loader's view that all programs of an image share."""
    paths = [path for path in inventory.variable("LD_LIBRARY_PATH").split(":") if path.startswith("/")]
    multiarch = _MULTIARCH.get(inventory.architecture or "")
    defaults = [f"{top}/{multiarch}" for top in ("/lib", "/usr/lib")] if multiarch else []
    defaults += ["/lib64", "/usr/lib64", "/lib", "/usr/lib"]
    cache = parse_cache(rootfs.read("/etc/ld.so.cache", _CACHE_LIMIT) or b"")
    if not cache:  # an image whose ldconfig never ran: say what it would find
        defaults = [*_configured(rootfs, "/etc/ld.so.conf"), *defaults]
    return Loader(
        rootfs,
        tuple(posixpath.normpath(path) for path in paths),
        cache,
        tuple(folder for folder in defaults if rootfs.is_folder(folder)),
    )


def parse_cache(content: bytes) -> dict[str, str]:
    """Soname to path of an `ld.so.cache`, the first of each name; empty where it is in no known format."""
    start = content.find(_CACHE_MAGIC)
    if start < 0:
        return {}
    found: dict[str, str] = {}
    try:
        number, _ = struct.unpack_from("<II", content, start + 20)
        for index in range(min(number, (len(content) - start) // 24)):
            # flags, offsets of name and path from the magic, OS version, hardware capabilities
            _, name, path, _, _ = struct.unpack_from("<iIIIQ", content, start + 48 + 24 * index)
            found.setdefault(_text(content, start + name), _text(content, start + path))
    except struct.error:
        pass
    return found


def _text(content: bytes, start: int) -> str:
    end = content.find(b"\0", start, start + 4096)
    return content[start : end if end >= 0 else start].decode(errors="replace")


def _configured(rootfs: Rootfs, path: str, depth: int = 0) -> Iterator[str]:
    """The folders that ld.so.conf names, its `include` lines followed."""
    for line in (rootfs.read_text(path, _CONFIGURATION_LIMIT) or "").splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["include"] and depth < 4:
            for pattern in words[1:]:
                folder, name = posixpath.split(posixpath.join("/etc", pattern))
                expression = re.compile(re.escape(name).replace(r"\*", ".*") + "$")
                for one in [one for one in rootfs.names(folder) if expression.match(one)][:_MOST_FILES]:
                    yield from _configured(rootfs, f"{folder}/{one}", depth + 1)
        elif words and words[0].startswith("/"):
            yield posixpath.normpath(words[0])


def expanded(search: Iterable[str], library: str) -> tuple[str, ...]:
    """RPATH entries of the library at a path: `$ORIGIN` is its folder."""
    origin = posixpath.dirname(library)
    found = (path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for path in search)
    return tuple(dict.fromkeys(posixpath.normpath(path) for path in found if path.startswith("/")))
