"""The search path of an image's dynamic loader, and the libraries that it finds.

Source: ld.so(8): DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache, the default directories. The cache's format: glibc,
sysdeps/generic/dl-cache.h. What one process loads, one library after the other, is in `process`.
"""

from __future__ import annotations

import posixpath
import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.inventory.formats.elf import Dynamic, read_dynamic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.inventory.contents.model import Inventory
    from toolkit.inventory.formats.rootfs import Rootfs

_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
# FLAG_ELF, and FLAG_ELF_LIBC6 with the machine's. Source: glibc, sysdeps/generic/ldconfig.h.
_ANY_ELF = 1
_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03, "ppc64le": 0x0503}
_CACHE_LIMIT = 8 << 20
_CONFIGURATION_LIMIT = 1 << 20
_MAX_FILES = 64
_MULTIARCH = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "ppc64le": "powerpc64le-linux-gnu"}


@dataclass(frozen=True, slots=True)
class Loader:
    """The directories that every program of the image gets, by the way that leads to them; and its cache by soname.

    `configured` are directories of ld.so.conf, which the loader itself does not read: only `ldconfig` does.
    """

    rootfs: Rootfs
    library_path: tuple[str, ...] = ()
    cache: dict[str, str] = field(default_factory=dict)
    defaults: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    _dynamics: dict[str, Dynamic | None] = field(default_factory=dict)

    @property
    def directories(self) -> tuple[str, ...]:
        """All directories, in the loader's order, each once."""
        cached = dict.fromkeys(posixpath.dirname(path) for path in self.cache.values())
        return tuple(dict.fromkeys((*self.library_path, *cached, *self.defaults)))

    def dynamic(self, path: str) -> Dynamic | None:
        """The dynamic section of the library at a path without symlinks, read once."""
        if path not in self._dynamics:
            self._dynamics[path] = read_dynamic(self.rootfs, path)
        return self._dynamics[path]

    def find(self, name: str, first: Iterable[str], after: Iterable[str] = ()) -> str | None:
        """The path of a library: `first` are directories of DT_RPATH, `after` those of DT_RUNPATH."""
        for directory in (*first, *self.library_path, *after):
            if self.rootfs.is_file(f"{directory}/{name}"):
                return f"{directory}/{name}"
        cached = self.cache.get(name)
        if cached and self.rootfs.is_file(cached):
            return cached
        return next(
            (f"{directory}/{name}" for directory in self.defaults if self.rootfs.is_file(f"{directory}/{name}")), None
        )

    def same_stem(self, soname: str, directories: Iterable[str]) -> Iterator[str]:
        """Libraries of another version: libcudnn.so.8 where libcudnn.so.9 is wanted."""
        pattern = re.compile(re.escape(soname.partition(".so")[0]) + r"\.so\.\d+(\.\d+)?$")
        for directory in dict.fromkeys(directories):
            names = (name for name in self.rootfs.names(directory) if pattern.match(name) and name != soname)
            yield from (f"{directory}/{name}" for name in names)


def read_loader(rootfs: Rootfs, inventory: Inventory) -> Loader:
    """The loader's view that all programs of an image share."""
    paths = [path for path in inventory.variable("LD_LIBRARY_PATH").split(":") if path.startswith("/")]
    multiarch = _MULTIARCH.get(inventory.architecture or "")
    defaults = [f"{top}/{multiarch}" for top in ("/lib", "/usr/lib")] if multiarch else []
    defaults += ["/lib64", "/usr/lib64", "/lib", "/usr/lib"]
    return Loader(
        rootfs,
        library_path=tuple(paths),
        cache=parse_cache(
            rootfs.read("/etc/ld.so.cache", _CACHE_LIMIT) or b"", _FLAGS.get(inventory.architecture or "")
        ),
        defaults=tuple(directory for directory in defaults if rootfs.is_directory(directory)),
        configured=tuple(_configured(rootfs, "/etc/ld.so.conf")),
    )


def parse_cache(content: bytes, wanted: int | None = None) -> dict[str, str]:
    """Soname to path of an `ld.so.cache`, the first of each name; empty where it is in no known format.

    `wanted` are the flags of the machine's libraries: the cache of a 64-bit system can list 32-bit libraries too.
    """
    start = content.find(_CACHE_MAGIC)
    if start < 0:
        return {}
    found: dict[str, str] = {}
    try:
        number, _ = struct.unpack_from("<II", content, start + 20)
        for index in range(min(number, (len(content) - start) // 24)):
            # flags, offsets of name and path from the magic, OS version, hardware capabilities
            own, name, path, _, _ = struct.unpack_from("<iIIIQ", content, start + 48 + 24 * index)
            if wanted is None or own in (_ANY_ELF, wanted):
                found.setdefault(_text(content, start + name), _text(content, start + path))
    except struct.error:
        pass
    return found


def _text(content: bytes, start: int) -> str:
    end = content.find(b"\0", start, start + 4096)
    return content[start : end if end >= 0 else start].decode(errors="replace")


def _configured(rootfs: Rootfs, path: str, depth: int = 0) -> Iterator[str]:
    """The directories that ld.so.conf names, its `include` lines followed."""
    for line in (rootfs.read_text(path, _CONFIGURATION_LIMIT) or "").splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["include"] and depth < 4:
            for pattern in words[1:]:
                directory, name = posixpath.split(posixpath.join("/etc", pattern))
                expression = re.compile(re.escape(name).replace(r"\*", ".*") + "$")
                for file in [name for name in rootfs.names(directory) if expression.match(name)][:_MAX_FILES]:
                    yield from _configured(rootfs, f"{directory}/{file}", depth + 1)
        elif words and words[0].startswith("/"):
            yield posixpath.normpath(words[0])
