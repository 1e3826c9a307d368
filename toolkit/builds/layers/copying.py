"""The inputs of a step: files of this host, copied into its upper directory as `%files` of a definition copies them.

The runtime runs `cp -fLr` (Apptainer 1.4.5, internal/pkg/build/files/copy.go) with the umask 0002 whatever that of the
user is: symlinks are followed, owners become root, and a file that is there keeps its mode. Runs as root of the user's
namespace.
"""

from __future__ import annotations

import os
import posixpath
import subprocess
from typing import TYPE_CHECKING

from toolkit.builds.layers.copies import copy_directories, copy_file
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.builds.layers.below import Lower

_MAX_SYMLINKS = 40  # as the kernel's MAXSYMLINKS


def copy_inputs(upper: str, lower: Lower, inputs: Sequence[tuple[str, str]]) -> int:
    """Copy each (source, path in the image); return the exit status of the first `cp` that fails, else 0."""
    os.umask(0o002)
    for source, path in inputs:
        target = resolve(lower, path)
        if path.endswith("/"):
            copy_directories(upper, lower, target)
        into = (
            f"{target}/{os.path.basename(os.path.normpath(source))}" if _is_directory(upper, lower, target) else target
        )
        copy_directories(upper, lower, os.path.dirname(into))
        _copy_up(upper, lower, source, into)
        words = ["cp", "-fLr", "--", source, os.path.join(upper, target)]
        status = subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode
        if status != 0:
            return status
    return 0


def resolve(lower: Lower, path: str) -> str:
    """A path of the image without the symlinks that lie below on its way; they stay inside the image."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    way, followed = "", 0
    while names:
        name = names.pop(0)
        if name == "..":
            way = posixpath.dirname(way)
            continue
        step = f"{way}/{name}".lstrip("/")
        seen = lower.find(step)
        if seen is not None and seen.kind is EntryKind.SYMLINK and followed < _MAX_SYMLINKS:
            followed += 1
            target = lower.target(seen)
            way = "" if target.startswith("/") else way
            names[:0] = [part for part in target.split("/") if part not in ("", ".")]
            continue
        way = step
    return way


def _is_directory(upper: str, lower: Lower, path: str) -> bool:
    if os.path.lexists(os.path.join(upper, path)):
        return os.path.isdir(os.path.join(upper, path))
    below = lower.find(path)
    return below is not None and below.is_directory


def _copy_up(upper: str, lower: Lower, source: str, path: str) -> None:
    """Bring what `source` would be written over into the upper directory, so that `cp` finds it there."""
    below = lower.find(path)
    if below is None:
        return
    if below.is_directory:
        copy_directories(upper, lower, path)
        if os.path.isdir(source):
            for name in os.listdir(source):
                _copy_up(upper, lower, os.path.join(source, name), f"{path}/{name}")
    elif below.kind is EntryKind.FILE and not os.path.lexists(os.path.join(upper, path)):
        copy_file(lower, below, os.path.join(upper, path))
