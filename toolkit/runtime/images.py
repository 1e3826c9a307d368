"""Whether a path can be an image at all: said before a program is started on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

_SIF_MAGIC = b"SIF_MAGIC"
_SQUASHFS_MAGIC = b"hsqs"


def existing_image(path: Path) -> Path:
    """Return `path`; raise WrongInput where it is no SIF, no squashfs file and no sandbox."""
    if not path.exists():
        raise WrongInput(f"there is no image {path}", fix="`ctk build RECIPE` makes one.")
    if path.is_dir():
        if not (path / ".singularity.d").is_dir():
            raise WrongInput(f"{path} is a folder, but not a sandbox: it has no .singularity.d")
        return path
    if not path.is_file():
        raise WrongInput(f"{path} is not an image: it is neither a file nor a folder")
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    # A SIF begins with 32 octets of launch script (apptainer/sif, pkg/sif/sif.go).
    if start[32:41] != _SIF_MAGIC and start[:4] != _SQUASHFS_MAGIC:
        raise WrongInput(f"{path} is not an image: neither SIF nor squashfs")
    return path
