"""Programs for GPUs that are no framework with a verdict, as far as their files tell: XGBoost, libtorch, CUDA.jl, …"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.inventory.formats.elf import read_architectures
from toolkit.inventory.formats.tree import Unreadable
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.inventory.contents.model import Inventory
    from toolkit.inventory.formats.rootfs import Rootfs

_FILE = Path(__file__).with_name("others.toml")
_LIMIT = 1 << 16
_MAX_DEPOTS = 8
_MAX_NAMES = 400  # in one directory


@dataclass(frozen=True, slots=True)
class OtherSoftware:
    """A program by `title`, with its version and path. `code` is what it has for GPUs, `note` what else is known."""

    title: str
    version: str
    path: str
    code: tuple[str, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        return f"{self.title} {self.version}".strip()


def read_others(rootfs: Rootfs, inventory: Inventory) -> tuple[OtherSoftware, ...]:
    """What the image has of the programs in `others.toml`."""
    found = [*_distributions(rootfs, inventory), *_installations(rootfs, inventory)]
    return tuple({software.path: software for software in found}.values())


@cache
def _table() -> dict[str, Any]:
    return read_toml(_FILE).content


def _distributions(rootfs: Rootfs, inventory: Inventory) -> Iterator[OtherSoftware]:
    rows = {row["name"]: row for row in _table()["distribution"]}
    for distribution in inventory.distributions:
        row = rows.get(distribution.name)
        if row is not None:
            library = f"{distribution.directory}/{row['library']}"
            yield _described(rootfs, row, distribution.version, distribution.directory, library)


def _installations(rootfs: Rootfs, inventory: Inventory) -> Iterator[OtherSoftware]:
    depots = [part for part in inventory.variable("JULIA_DEPOT_PATH").split(":") if part.startswith("/")]
    julia = depots[:_MAX_DEPOTS]
    for row in _table()["installation"]:
        patterns = [pattern.replace("{julia}", depot) for pattern in row["directories"] for depot in (julia or ["/"])]
        for directory in (found for pattern in dict.fromkeys(patterns) for found in _matching(rootfs, pattern)):
            try:
                version = re.search(
                    row["version"], rootfs.read_text(f"{directory}/{row['mark']}", _LIMIT) or "", re.MULTILINE
                )
                library = f"{directory}/{row['library']}" if "library" in row else None
                if version is not None:
                    yield _described(rootfs, row, version[1], directory, library)
            except Unreadable:  # another user's sandbox
                continue


def _described(rootfs: Rootfs, row: dict[str, Any], version: str, path: str, library: str | None) -> OtherSoftware:
    code = read_architectures(rootfs, library) if library else ()
    if row.get("note") or code:
        note = row.get("note", "")
    elif library and rootfs.is_file(library) and library.endswith("_cuda.so"):
        note = "it is built with CUDA; for which GPUs, its files do not tell"
    else:
        note = row.get("without", "it has no CUDA code")
    return OtherSoftware(row["title"], version, path, code, note)


def _names(rootfs: Rootfs, directory: str) -> tuple[str, ...]:
    """The names in a directory, up to a limit; none if another user's sandbox does not permit it."""
    try:
        return rootfs.names(directory)[:_MAX_NAMES]
    except Unreadable:
        return ()


def _matching(rootfs: Rootfs, pattern: str) -> list[str]:
    """The paths that a pattern may mean: `*` stands within a name."""
    found = [""]
    for part in pattern.strip("/").split("/"):
        if "*" in part:
            found = [
                f"{parent}/{name}"
                for parent in found
                for name in _names(rootfs, parent or "/")
                if fnmatchcase(name, part)
            ]
        else:
            found = [f"{parent}/{part}" for parent in found]
    return found
