"""How an image remembers a path that it was built from, without the path: images are shared."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_LENGTH = 16  # of a hash, in hexadecimal digits: enough to tell a user's files apart
_WITH_PATH = re.compile(r"((?:definition|sandbox|reference:docker-archive|reference:oci):)(/.*)", re.DOTALL)


def path_identity(path: str) -> str:
    """The last part of an absolute path, and a hash of all of it: of two users' files only the name can be the same."""
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()
    return f"{Path(path).name}#{digest[:_LENGTH]}"


def current_identity(recorded: str) -> str:
    """The identity of a target as records have it now, from one that may name the absolute path."""
    match = _WITH_PATH.fullmatch(recorded)
    return f"{match[1]}{path_identity(match[2])}" if match else recorded
