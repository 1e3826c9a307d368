"""Python environments anywhere in an image, off PATH too: a project's venv, a conda of its own, a standalone Python.

The search goes down from the top, level by level, and is limited: an image can contain a data set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.inventory.formats.tree import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.inventory.formats.rootfs import Rootfs

_PROGRAM = re.compile(r"^python(\d+(\.\d+t?)?)?$")
# Of the system; a Python there lies in the usual places.
_SYSTEM = frozenset({
    ".singularity.d", "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "lost+found", "media", "proc",
    "run", "sbin", "sys", "tmp", "usr", "var",
})  # fmt: skip
_STARTS = ("/usr/local",)
# Below these lie no environments, or copies of ones: the parts of an installation, conda's unpacked archives, …
_PARTS = frozenset({
    ".cache", ".git", "__pycache__", "bin", "conda-meta", "dist-packages", "doc", "etc", "include", "lib", "lib64",
    "man", "node_modules", "pkgs", "sbin", "share", "site-packages",
})  # fmt: skip
_LIKELY = re.compile(r"env|conda|forge|python", re.IGNORECASE)  # names of environments: looked at first
_DEEPEST = 5  # /home/NAME/projects/PROJECT/.venv
_MAX_LISTED = 1000
_MAX_IN_ONE = 200  # a directory of more is data


def environment_prefixes(rootfs: Rootfs) -> Iterator[str]:
    """The prefixes of environments, nearest to the top first: what holds `bin/python` beside its marks."""
    level = [f"/{name}" for name in rootfs.subdirectories("/") if name not in _SYSTEM]
    level += [start for start in _STARTS if rootfs.is_directory(start)]
    listed = 0
    for _ in range(_DEEPEST):
        below: list[str] = []
        for directory in level:
            listed += 1
            if listed > _MAX_LISTED:
                return
            if directory == "/root" and rootfs.closed_directory(directory):
                continue
            try:
                inside = rootfs.subdirectories(directory)
            except Unreadable:  # of another user, in a sandbox
                continue
            found = _is_environment(rootfs, directory, inside)
            if found:
                yield directory
            if len(inside) <= _MAX_IN_ONE:
                wanted = ("envs",) if found and "envs" in inside else inside
                below += [f"{directory}/{name}" for name in wanted if name not in _PARTS]
        level = sorted(below, key=lambda directory: not _LIKELY.search(directory.rpartition("/")[2]))


def _is_environment(rootfs: Rootfs, directory: str, inside: tuple[str, ...]) -> bool:
    """Whether a directory is laid out as an environment, with a Python in it."""
    if "bin" not in inside or not {"lib", "lib64"} & set(inside):
        return False
    return any(_PROGRAM.match(name) for name in rootfs.names(f"{directory}/bin"))
