"""The inputs of a step: files of this host, copied into its upper directory as `%files` of a definition copies them.

The runtime runs `cp -fLr` (Apptainer 1.4.5, internal/pkg/build/files/copy.go) with the umask 0002 whatever that of the
user is: symlinks are followed, owners become root, and a file that is there keeps its mode. Here `cp` copies into an
empty directory, and what it made is moved into the upper directory, where no symlink may be followed.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

from toolkit.builds.layers.copies import copy_directories, copy_file
from toolkit.builds.layers.normalise import CannotNormalise
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.builds.layers.below import Lower

_MAX_SYMLINKS = 40  # as the kernel's MAXSYMLINKS


def stage_inputs(directory: str, inputs: Sequence[tuple[str, str]]) -> int:
    """Copy each source into the new `directory`, by its number; return the status of the first `cp` that fails."""
    os.mkdir(directory)
    for number, (source, _) in enumerate(inputs):
        words = ["cp", "-fLrT", "--", source, os.path.join(directory, str(number))]
        status = subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode
        if status != 0:
            return status
    return 0


def place_inputs(upper: str, lower: Lower, inputs: Sequence[tuple[str, str]], directory: str) -> None:
    """Move each copy in `directory` to its path in the image. Raises CannotNormalise where a symlink is in the way."""
    for number, (source, path) in enumerate(inputs):
        target = resolve(lower, path)
        if path.endswith("/"):
            copy_directories(upper, lower, target)
        if _is_directory(upper, lower, target):
            target = resolve(lower, f"{target}/{os.path.basename(os.path.normpath(source))}")
        copy_directories(upper, lower, os.path.dirname(target))
        _place(upper, lower, os.path.join(directory, str(number)), target)


def resolve(lower: Lower, path: str) -> str:
    """A path of the image without the symlinks that lie below on its way; they stay inside the image.

    Raises CannotNormalise where they are too many, or lead in a circle.
    """
    names = [name for name in path.split("/") if name not in ("", ".")]
    way, followed = "", 0
    while names:
        name = names.pop(0)
        if name == "..":
            way = posixpath.dirname(way)
            continue
        step = f"{way}/{name}".lstrip("/")
        seen = lower.find(step)
        if seen is not None and seen.kind is EntryKind.SYMLINK:
            followed += 1
            if followed > _MAX_SYMLINKS:
                raise CannotNormalise(f"{path} leads through more than {_MAX_SYMLINKS} symlinks of the base")
            target = lower.target(seen)
            way = "" if target.startswith("/") else way
            names[:0] = [part for part in target.split("/") if part not in ("", ".")]
            continue
        way = step
    return way


def _is_directory(upper: str, lower: Lower, path: str) -> bool:
    mode = _mode(os.path.join(upper, path))
    if mode is not None:
        return stat.S_ISDIR(mode)
    below = lower.find(path)
    return below is not None and below.is_directory


def _place(upper: str, lower: Lower, staged: str, path: str) -> None:
    """Move a copy to a path, over what is there: directories are merged, and a file keeps its mode and its names."""
    here = os.path.join(upper, path)
    below, is_directory = lower.find(path), os.path.isdir(staged)
    if _mode(here) is None and below is not None:
        if below.is_directory:
            copy_directories(upper, lower, path)
        elif below.kind is EntryKind.FILE:
            copy_file(lower, below, here)
        else:
            raise _in_the_way(path)
    mode = _mode(here)
    if mode is None:
        os.rename(staged, here)
    elif is_directory and stat.S_ISDIR(mode):
        for name in os.listdir(staged):
            _place(upper, lower, os.path.join(staged, name), f"{path}/{name}")
    elif stat.S_ISREG(mode) and not is_directory:
        target = os.open(here, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with open(staged, "rb") as source, os.fdopen(target, "wb") as file:
            shutil.copyfileobj(source, file)
    else:
        raise _in_the_way(path)


def _mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None


def _in_the_way(path: str) -> CannotNormalise:
    return CannotNormalise(f"/{path} is in the way of a copied file")
