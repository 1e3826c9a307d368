"""A base on this machine must not change while a lock or an image is made from it.

Otherwise a lock has the digest of one image and the packages of another, or an image differs from its lock.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import CheckFailed, CtkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.recipes.model import Base


@dataclass(frozen=True, slots=True)
class BaseState:
    """What `path` led to at one moment: the base with its inodes, sizes and times, the links and directories before it.

    Replacing or writing a file changes its inode or its change time (`st_ctime`), which cannot be set.
    """

    path: Path
    stamps: tuple[tuple[str, int, int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class PresentBase:
    """What a command knows of a base: its image on this machine, and the digest by which it was pulled.

    `state` is what a base on this machine was when the command began. All None: nothing of it is here.
    """

    image: Path | None = None
    digest: str | None = None
    state: BaseState | None = None


NOT_HERE = PresentBase()


def state_of(base: Base | None) -> BaseState | None:
    """The state of a base on this machine; None for one that a registry or an archive of packages holds."""
    return _look(base.path) if base is not None and base.is_local else None


def require_unchanged(before: BaseState | None) -> None:
    """Raise CheckFailed (`base-changed`) if a base changed."""
    if before is not None and _look(before.path) != before:
        raise CheckFailed(
            f"the base {before.path} changed while ctk read it",
            fix="Run the command again when no process writes to it, or start from a copy of your own.",
            code="base-changed",
        )


@contextlib.contextmanager
def unchanged(before: BaseState | None) -> Iterator[None]:
    """Require that a base does not change while the block runs. A change also explains an error of the block."""
    try:
        yield
    except CtkError:
        require_unchanged(before)
        raise
    require_unchanged(before)


def _look(path: Path) -> BaseState:
    real = Path(os.path.realpath(path))
    links = [parent for parent in (path.absolute(), *path.absolute().parents) if parent.is_symlink()]
    inside = sorted(Path(directory, name) for directory, *names in os.walk(real) for name in (*names[0], *names[1]))
    whole = [stamp for entry in (real, *links, *inside) if (stamp := _stamp(entry)) is not None]
    # A parent directory of the base changes with each of its files: only its identity is compared.
    before = [(*stamp[:3], 0, 0, 0) for parent in real.parents if (stamp := _stamp(parent)) is not None]
    return BaseState(path, (*whole, *before))


def _stamp(path: Path) -> tuple[str, int, int, int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
