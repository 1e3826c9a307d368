"""The hash of a layer: over what is in its tree, and nothing of when it was made."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import TYPE_CHECKING

from toolkit.builds.layers.normalise import own_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

_LENGTH = 32  # hex digits


def digest_of(upper: str) -> str:
    """Path, type, mode, owner, content, target and extended attributes of everything, and what is one file."""
    digest = hashlib.sha256()
    first_names: dict[tuple[int, int], str] = {}
    for path in _paths(upper, ""):
        here = os.path.join(upper, path)
        state = os.lstat(here)
        inode = (state.st_dev, state.st_ino)
        linked = first_names.setdefault(inode, path) if stat.S_ISREG(state.st_mode) and state.st_nlink > 1 else path
        attributes = sorted((name, value.hex()) for name, value in own_attributes(here).items())
        what = _what(here, state) if linked == path else linked
        record = [path, state.st_mode, state.st_uid, state.st_gid, what, attributes]
        digest.update(json.dumps(record).encode() + b"\n")
    return digest.hexdigest()[:_LENGTH]


def _paths(upper: str, path: str) -> Iterator[str]:
    yield path
    here = os.path.join(upper, path)
    if stat.S_ISDIR(os.lstat(here).st_mode):
        for name in sorted(os.listdir(here), key=os.fsencode):
            yield from _paths(upper, os.path.join(path, name))


def _what(path: str, state: os.stat_result) -> str | list[int | str]:
    if stat.S_ISLNK(state.st_mode):
        return os.readlink(path)
    if stat.S_ISREG(state.st_mode):
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return [state.st_size, digest.hexdigest()]
    return [state.st_rdev]
