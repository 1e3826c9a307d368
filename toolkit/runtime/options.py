"""Arguments for apptainer and singularity: nothing here runs anything.

Both understand every option used here (Apptainer >= 1.0, SingularityCE >= 3.8). This is the only module that knows
how they are spelled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# The file in the image to which a build adds labels; the runtime removes it (Apptainer 1.4.5, stage.go).
BUILD_LABELS = "/.build.labels"
# The runtime evaluates APPTAINERENV_X as the text between double quotes: nothing in a value may be expanded there.
EXPANDED = r"[\\$`]"


def exec_arguments(
    image: str,
    command: Sequence[str],
    *,
    gpu: bool,
    rocm: bool = False,
    isolated: bool = False,
    binds: Iterable[str] = (),
    userns: bool = False,
    writable: bool = False,
    fakeroot: bool = False,
    directory: str | None = None,
    overlay: str | None = None,
) -> list[str]:
    """`exec … IMAGE COMMAND`, without the program name. `gpu` binds NVIDIA's driver, `rocm` the devices of
    AMD's; binds are `SRC[:DST[:OPTS]]`. `isolated` gives the command none of the host's variables and processes of its
    own, all of which end with it.

    `overlay` is a directory that takes all changes, so that the command is root of an image that stays as it is; of the
    host it sees neither the home nor the variables, and its processes end with it. `directory` is the working directory
    in the container. Of the runtime's own messages only warnings and errors are shown: its INFO lines are the same in
    every log, such as that gocryptfs, for encrypted images, is not installed.
    """
    options = ["--quiet", "exec"]
    if gpu:
        options.append("--nv")
    if rocm:
        options.append("--rocm")
    if isolated:
        options += ["--cleanenv", "--pid"]
    if userns:
        options.append("--userns")
    if fakeroot:
        options.append("--fakeroot")
    if writable:
        options.append("--writable")
    if overlay is not None:
        options += ["--fakeroot", "--overlay", overlay, "--no-home", "--cleanenv", "--pid"]
    if directory is not None:
        options += ["--pwd", directory]
    for bind in binds:
        options += ["--bind", bind]
    return [*options, image, *command]


def step_arguments(
    image: str,
    command: Sequence[str],
    *,
    lowers: Sequence[str],
    overlay: str | None,
    binds: Iterable[str],
    hidden: Sequence[str],
) -> list[str]:
    """`exec … IMAGE COMMAND` for a step of a build: the command is root of the image, and sees what `%post` sees.

    `lowers` are layers over the image, the lowest first; the directory `overlay` takes all changes, without one there
    can be none. `hidden` are mounts of this host that `%post` does not have.
    """
    options = ["--quiet", "exec", "--fakeroot", "--cleanenv", "--no-home", "--pwd", "/", "--no-mount", ",".join(hidden)]
    for layer in (*(f"{lower}:ro" for lower in lowers), *([overlay] if overlay is not None else [])):
        options += ["--overlay", layer]
    for bind in binds:
        options += ["--bind", bind]
    return [*options, image, *command]


def step_environment() -> dict[str, str]:
    """Variables of the host process that give a step the ones that only `%post` has: where labels are collected."""
    names = ("APPTAINER_LABELS", "SINGULARITY_LABELS")
    return {f"{runtime}ENV_{name}": BUILD_LABELS for runtime in ("APPTAINER", "SINGULARITY") for name in names}


def image_argument(image: Path) -> str:
    """The path as the runtime must see it: neither as an option (`-x.sif`) nor as a reference (`library:x.sif`)."""
    return str(image) if image.is_absolute() else f"./{image}"


def container_environment(**more: str) -> dict[str, str]:
    """Variables of the host process that give the container PYTHONNOUSERSITE and `more`, whichever runtime it is.

    A package in ~/.local, which both runtimes mount, would be imported instead of the image's. Values reach the
    container as they are.
    """
    variables = {"PYTHONNOUSERSITE": "1", **more}
    return {
        f"{runtime}ENV_{name}": escape(value)
        for runtime in ("APPTAINER", "SINGULARITY")
        for name, value in variables.items()
    }


def escape(text: str) -> str:
    """`text` for the shell in which the runtime evaluates such variables: nothing in it is expanded."""
    return re.sub(f"({EXPANDED})", r"\\\1", text)
