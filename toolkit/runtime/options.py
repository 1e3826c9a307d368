"""What apptainer and singularity are told, as argument lists: nothing here runs anything.

Both understand every option used here (Apptainer >= 1.0, SingularityCE >= 3.8). This is the only module that knows
how they are spelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def exec_arguments(
    image: str,
    command: Sequence[str],
    *,
    gpu: bool,
    binds: Iterable[str] = (),
    userns: bool = False,
    writable: bool = False,
    fakeroot: bool = False,
) -> list[str]:
    """`exec … IMAGE COMMAND`, without the program name. `gpu` binds the driver; binds are `SRC[:DST[:OPTS]]`."""
    options = ["exec"]
    if gpu:
        options.append("--nv")
    if userns:
        options.append("--userns")
    if fakeroot:
        options.append("--fakeroot")
    if writable:
        options.append("--writable")
    for bind in binds:
        options += ["--bind", bind]
    return [*options, image, *command]


def image_argument(image: Path) -> str:
    """The path as the runtime must see it: neither as an option (`-x.sif`) nor as a reference (`library:x.sif`)."""
    return str(image) if image.is_absolute() else f"./{image}"


def container_environment() -> dict[str, str]:
    """Variables of the host process that reach the container, whichever runtime it is.

    A package in ~/.local, which both runtimes mount, would be imported instead of the image's.
    """
    return {f"{runtime}ENV_PYTHONNOUSERSITE": "1" for runtime in ("APPTAINER", "SINGULARITY")}
