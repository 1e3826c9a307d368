"""A new image is read back before anybody gets it: the runtime may pack a damaged one without an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.formats.squashfs_check import read_back
from toolkit.support.errors import ProgramFailed, WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FIX = (
    "Try again. If it happens again, check the disk and the memory of this host, or use another version of the "
    "container runtime."
)


def require_readable(
    image: Path, what: str, *, cores: int | None = None, on_progress: Callable[[int, int], None] | None = None
) -> None:
    """Decompress every block of a new image (Apptainer issue 3486); a format that only the runtime reads is left alone.

    Raises ProgramFailed (`image-damaged`): `what` was damaged.
    """
    try:
        read_back(image, cores=cores, on_progress=on_progress)
    except WrongInput as error:
        if error.code == "corrupt-image":
            message = f"{what} was damaged when it was packed: {error.message}"
            raise ProgramFailed(message, fix=_FIX, code="image-damaged") from error
