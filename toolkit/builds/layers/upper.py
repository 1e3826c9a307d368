"""Write into the upper directory of a step, where a base or a script of the build may have put symlinks."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.layers.normalise import CannotNormalise

if TYPE_CHECKING:
    from collections.abc import Iterator

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class UpperWriter:
    """Paths are those in the image ("/.singularity.d/labels.json"). No symlink is followed."""

    directory: str

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Write a new file in place of what is there. Raises CannotNormalise where anything else is in the way."""
        with self._parent(path) as (parent, name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=parent), "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), mode)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with self._parent(path) as (parent, name), contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The directory of `path`, made if needed, and the last name."""
        *parents, name = path.strip("/").split("/")
        here = os.open(self.directory, _DIRECTORY)
        try:
            for parent in parents:
                below = _directory(parent, here)
                os.close(here)
                here = below
            yield here, name
        except OSError as error:
            if error.errno in DISK_FULL:
                raise
            raise CannotNormalise(f"{path} of the image cannot be replaced: {error.strerror}") from error
        finally:
            os.close(here)


def _directory(name: str, parent: int) -> int:
    """Open a directory, which is made if it is missing."""
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    made = os.open(name, _DIRECTORY, dir_fd=parent)
    os.fchmod(made, 0o755)
    return made
