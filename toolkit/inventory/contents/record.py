"""A distribution's RECORD: which files are its own, and what they should hash to.

Source: PyPA, "Recording installed projects".
"""

from __future__ import annotations

import csv
import hashlib
import posixpath
import re
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.inventory.contents.model import Distribution
    from toolkit.inventory.formats.rootfs import Rootfs

_LIMIT = 32 << 20
_CHUNK = 1 << 20
_SMALL = 1 << 16
_END_OF_LIBRARY = re.compile(r"\.so(?:\.[\d.]+)?(?=,)")


def read_record(rootfs: Rootfs, distribution: Distribution) -> dict[str, str]:
    """Absolute path in the image to "sha256=…" (base64, "" if the RECORD has none), for every file that it lists.

    Raises WrongInput if the RECORD is damaged.
    """
    text = rootfs.read_text(f"{distribution.metadata}/RECORD", _LIMIT) or ""
    base = posixpath.dirname(distribution.metadata)
    found = {}
    try:
        for row in csv.reader(line for line in text.splitlines() if "\0" not in line):
            if row and row[0]:
                found[posixpath.normpath(posixpath.join(base, row[0]))] = row[1] if len(row) > 1 else ""
    except csv.Error as error:
        raise WrongInput(f"{distribution.metadata}/RECORD is damaged: {error}") from error
    return found


def shared_libraries(rootfs: Rootfs, distribution: Distribution) -> list[str]:
    """Absolute paths of the shared libraries that the RECORD lists."""
    text = rootfs.read_text(f"{distribution.metadata}/RECORD", _LIMIT) or ""
    base = posixpath.dirname(distribution.metadata)
    # From the end of a name back to its line: a framework's RECORD has ten thousand lines, and few libraries.
    names = (text[text.rfind("\n", 0, end.start()) + 1 : end.end()] for end in _END_OF_LIBRARY.finditer(text))
    return [posixpath.normpath(posixpath.join(base, name)) for name in names if not set(name) & set(',"')]


def read_tags(rootfs: Rootfs, distribution: Distribution) -> tuple[str, ...]:
    """The tags of the wheel that was installed, as its file WHEEL lists them; none if there is no such file."""
    text = rootfs.read_text(f"{distribution.metadata}/WHEEL", _SMALL) or ""
    return tuple(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Tag:"))


def hash_of(rootfs: Rootfs, path: str) -> str | None:
    """The "sha256=…" of a file as a RECORD writes it; None if there is no such file."""
    file = rootfs.open(path)
    if file is None:
        return None
    digest = hashlib.sha256()
    with file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    from base64 import urlsafe_b64encode

    return "sha256=" + urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
