"""The shared libraries of one process of an image, loaded one after the other as the dynamic loader does.

Source: ld.so(8) and dlopen(3); for what they leave open, glibc 2.36 itself (tests/gpu/layouts.py). Where the library
that asks has no DT_RUNPATH, its DT_RPATH counts and that of each library through which it was loaded, up to the one
that dlopen was called for; the library that called dlopen is not among them. The DT_RUNPATH of the one that asks counts
for itself only. A library that is loaded under a name, or says that name in its DT_SONAME, is not searched again.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from toolkit.inventory.formats.elf import Dynamic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.loader import Loader

# The driver's own libraries: `--nv` binds them from the host. Source: Apptainer's nvliblist.conf.
_DRIVER = re.compile(r"^lib(cuda|cudadebugger|nvidia-[\w-]+|nvcuvid|nvoptix|nv(rm|os|sci|dla)\w*)\.so(\.\d+)*$")
# Libraries of every Python base.
_SYSTEM = re.compile(
    r"^(lib(c|m|dl|pthread|rt|util|resolv|gcc_s|stdc\+\+|gomp|z)\.so\.\d+|ld-linux-.*\.so\.\d|ld64\.so\.\d)$"
)
_UNREADABLE = Dynamic()
# No real framework comes near: a hostile image must not keep the audit busy.
_MAX_SEARCHES = 500
_MAX_DIRECTORIES = 256


@dataclass(frozen=True, slots=True)
class Library:
    """A loaded library: where it was found, what it says to the loader, and which one, linked with it, loaded it.

    `loader` is None if dlopen loaded it.
    """

    path: str
    dynamic: Dynamic
    loader: Library | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """A name that a library asked for, and where it was found, if it was. `by` is "" if the program itself asked."""

    name: str
    by: str
    path: str | None


class Process:
    """What is loaded so far. `program` is what the executable says to the loader: its DT_RPATH serves every library."""

    def __init__(self, loader: Loader, program: Library | None = None) -> None:
        self._loader = loader
        self._program = program
        # If the loader finds no C library, ctk does not know the image's system, and does not check its libraries.
        self._has_system = loader.find("libc.so.6", ()) is not None
        self._searches = 0
        self._names: dict[str, Library] = {}
        self._paths: dict[str, Library] = {}

    @property
    def libraries(self) -> tuple[Library, ...]:
        """All libraries that are loaded."""
        return tuple(self._paths.values())

    def loaded(self, name: str) -> Library | None:
        """The library that is loaded under a name or a path."""
        return self._names.get(name) or self._paths.get(self._loader.rootfs.resolve(name) or name)

    def open(self, name: str, opener: Library | None = None) -> list[Need]:
        """Load a library by path or name with all that it needs, as dlopen does, called by `opener`.

        Answers every name that was asked for. If one is missing, nothing of it stays loaded.
        """
        names, paths = dict(self._names), dict(self._paths)
        first = self._need(name, opener, linked=False)
        needs, queue = [first], deque([first])
        seen: set[str] = set()
        while queue:
            path = queue.popleft().path
            library = self.loaded(path) if path else None
            if library is None or library.path in seen:
                continue
            seen.add(library.path)
            found = [
                self._need(soname, library, linked=True) for soname in library.dynamic.needed if self._is_judged(soname)
            ]
            needs += found
            queue += found
        if any(need.path is None for need in needs):
            self._names, self._paths = names, paths
        return needs

    def _is_judged(self, name: str) -> bool:
        return not _DRIVER.match(name) and (self._has_system or not _SYSTEM.match(name))

    def _need(self, name: str, asker: Library | None, *, linked: bool) -> Need:
        by = asker.path if asker else ""
        known = self._names.get(name)
        if known is not None:
            return Need(name, by, known.path)
        path = self._search(name, asker)
        real = self._loader.rootfs.resolve(path) if path else None
        if path is None or real is None:
            return Need(name, by, None)
        library = self._paths.get(real)
        if library is None:
            dynamic = self._loader.dynamic(real)
            library = Library(path, dynamic or _UNREADABLE, asker if linked else None)
            self._paths[real] = library
            self._names[path] = library
            # A file that is not a library is treated as a library of that name without any facts.
            soname = dynamic.soname if dynamic else posixpath.basename(path)
            if soname:
                self._names.setdefault(soname, library)
        self._names[name] = library
        return Need(name, by, library.path)

    def _search(self, name: str, asker: Library | None) -> str | None:
        self._searches += 1
        if self._searches > _MAX_SEARCHES:
            return None
        if "/" in name:
            path = _expanded(name, asker.path) if asker else name
            return path if self._loader.rootfs.is_file(path) else None
        runpath = asker.dynamic.runpath[:_MAX_DIRECTORIES] if asker else ()
        after = (_expanded(directory, asker.path) for directory in runpath) if asker else ()
        first = islice(self._first(asker), _MAX_DIRECTORIES)
        return self._loader.find(name, first, [directory for directory in after if directory.startswith("/")])

    def _first(self, asker: Library | None) -> Iterator[str]:
        """The directories of DT_RPATH, from the library that asks up to the program; none if it has a DT_RUNPATH."""
        if asker is not None and asker.dynamic.has_runpath:
            return
        library = asker
        while library is not None:
            yield from _directories(library)
            library = library.loader
        if self._program is not None:
            yield from _directories(self._program)


def _directories(library: Library) -> list[str]:
    found = (_expanded(path, library.path) for path in library.dynamic.rpath)
    return [path for path in found if path.startswith("/")]


def _expanded(path: str, library: str) -> str:
    """An entry of DT_RPATH or DT_RUNPATH: `$ORIGIN` is the directory of the library, by the path that found it.

    `..` stays: what it means depends on symlinks, which the reader of the image follows as the kernel does.
    """
    origin = posixpath.dirname(library)
    return path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
