"""The upper directory of a step before and after its script: the script itself, metadata, and the mark of a layer."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from toolkit.builds.layers.copies import copy_directories, remove_unchanged
from toolkit.builds.layers.copying import resolve
from toolkit.builds.layers.digest import digest_of
from toolkit.builds.layers.links import check_links
from toolkit.builds.layers.metadata import SCRIPT_LABELS
from toolkit.builds.layers.normalise import MARK, METADATA, CannotNormalise, normalise, own_attributes
from toolkit.builds.layers.upper import DISK_FULL, UpperWriter
from toolkit.definitions.places import SCRIPT, reserved_paths
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.builds.layers.below import Lower
    from toolkit.builds.layers.copies import Copy

# At run time the runtime makes both from those of the first partition, and adds this user (Apptainer 1.4.5,
# internal/pkg/util/fs/files/passwd.go): a layer over them is not seen.
_OF_FIRST_PARTITION = ("etc/passwd", "etc/group")
# The runtime gives `%post` copies of these of the host, and makes them where the base has none (Apptainer 1.4.5,
# internal/pkg/build/sources/base_environment.go).
HOST_FILES = ("/etc/hosts", "/etc/resolv.conf")


def refuse_reserved(lower: Lower, inputs: Iterable[str]) -> None:
    """Raise CannotNormalise if the image has anything where a build puts its own files, or no place for metadata.

    A SIF that no build of the runtime made may lack the directories that the runtime adds to a flat image.
    """
    for path in (METADATA, f"{METADATA}/actions"):
        found = lower.find(path)
        if found is None or not found.is_directory:
            raise CannotNormalise(f"the base has no directory /{path}, as an image that the runtime built has")
    for path in reserved_paths(inputs):
        if lower.find(path) is not None:
            raise CannotNormalise(f"the base has {path}, where a build puts files of its own")


def write_script(upper: str, script: str) -> None:
    """Put the script of a step into the image while it runs; it is no part of the layer."""
    text = script if script.endswith("\n") else f"{script}\n"
    UpperWriter(upper).write(SCRIPT, text.encode(errors="surrogateescape"), 0o755)


def place_host_files(upper: str, lower: Lower) -> tuple[str, ...]:
    """Make the missing ones of `HOST_FILES`; return those onto which a file can be bound: no dangling symlinks."""
    writer, found = UpperWriter(upper), []
    for path in HOST_FILES:
        target = resolve(lower, path)
        below = lower.find(target)
        if below is None and target == path.lstrip("/") and not os.path.lexists(f"{upper}{path}"):
            copy_directories(upper, lower, os.path.dirname(target))
            writer.write(path, b"", 0o644)
            found.append(path)
        elif below is None or below.kind is EntryKind.FILE:
            found += [path] if below is not None or os.path.lexists(os.path.join(upper, target)) else []
    return tuple(found)


def finish_tree(upper: str, lower: Lower, copies: Mapping[str, Copy], files: Mapping[str, bytes]) -> str | None:
    """Write the metadata `files`, and make the tree that of a layer; return its name, None if there is no change."""
    writer = UpperWriter(upper)
    for path in (SCRIPT, SCRIPT_LABELS):
        if not _is_directory(f"{upper}{path}"):
            writer.remove(path)
    for path, content in files.items():
        _copy_parents(upper, lower, os.path.dirname(path))
        writer.write(path, content, 0o755 if path.endswith(".sh") else 0o644)
    remove_unchanged(upper, copies)
    check_links(lower, normalise(upper, lower), copies)
    _check_accounts(upper, lower)
    below, state = lower.status(lower.root), os.lstat(upper)
    same = (state.st_mode, state.st_uid, state.st_gid) == (below.mode, below.uid, below.gid)
    if same and not os.listdir(upper) and not own_attributes(upper):
        return None
    name = f"{MARK}{digest_of(upper)}"
    _copy_parents(upper, lower, METADATA)
    writer.write(f"/{METADATA}/{name}", b"", stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    return name


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _copy_parents(upper: str, lower: Lower, path: str) -> None:
    try:
        copy_directories(upper, lower, path)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise CannotNormalise(f"/{path.lstrip('/')} cannot hold the metadata of the image: {error.strerror}") from error


def _check_accounts(upper: str, lower: Lower) -> None:
    """Raise CannotNormalise if the layer changes what the runtime takes from the base."""
    for name in _OF_FIRST_PARTITION:
        for path in {name, resolve(lower, name)}:
            if _is_changed(upper, lower, path):
                raise CannotNormalise(f"the build changes /{name}, which the runtime takes from the base")


def _is_changed(upper: str, lower: Lower, path: str) -> bool:
    way = upper
    *parents, name = path.split("/")
    below = lower.find(path)
    for parent in parents:
        way = os.path.join(way, parent)
        if not os.path.lexists(way):
            return False
        if not _is_directory(way):
            return below is not None
    here = os.path.join(way, name)
    if not os.path.lexists(here):
        return False
    if below is None or below.kind is not EntryKind.FILE or not stat.S_ISREG(os.lstat(here).st_mode):
        return True
    with open(here, "rb") as file:
        return file.read() != b"".join(lower.read(below))
