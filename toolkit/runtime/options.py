"""Arguments for apptainer and singularity: nothing here runs anything.

Both understand every option used here (Apptainer >= 1.0, SingularityCE >= 3.8). This is the only module that knows
how they are spelled.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

# The file in the image to which a build adds labels; the runtime removes it (Apptainer 1.4.5, stage.go).
BUILD_LABELS = "/.build.labels"
# The runtime evaluates APPTAINERENV_X as the text between double quotes: nothing in a value may be expanded there.
EXPANDED = r"[\\$`]"

# Any value that is not empty has Python write at once what is printed (docs.python.org, using/cmdline.html).
UNBUFFERED = "PYTHONUNBUFFERED"

# Arguments of mksquashfs: with 3.2 GB of PyTorch, level 2 takes two thirds of the time of level 3, and 1% more space.
ZSTD = ("-comp", "zstd", "-Xcompression-level", "2")

_FAMILIES = ("APPTAINER_", "SINGULARITY_")
_BINDS = ("BIND", "BINDPATH", "MOUNT", "NV", "NVCCLI", "ROCM")
# Of the user's variables of the runtime, those that a step keeps: `build` hands binds and GPU to `%post`, too
# (Apptainer 1.4.5, stage.go).
_KEPT_FOR_STEPS = frozenset(
    [
        *_BINDS,
        *("CACHEDIR", "TMPDIR", "CONFIGDIR", "CONFDIR", "CONFIG_FILE"),  # where the runtime writes, what it is told
        *("USERNS", "UNSHARE_USERNS", "IGNORE_SUBUID", "IGNORE_FAKEROOT_COMMAND", "IGNORE_USERNS"),  # options of build
    ]
)


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
    binds: Iterable[str],
    hidden: Sequence[str],
    lowers: Sequence[str] = (),
    mounted: bool = False,
) -> list[str]:
    """`exec … IMAGE COMMAND` for a step of a build: the command is root of the image, and sees what `%post` sees.

    `mounted`: the image is a directory that can be changed, and this process already is root of the user namespace that
    it belongs to. Else it is a SIF with the layers `lowers` over it, the lowest first; nothing can be changed, and the
    processes of the command end with it. `hidden` are mounts of this host that `%post` does not have.
    """
    options = ["--quiet", "exec", "--cleanenv", "--no-home", "--pwd", "/"]
    options += ["--writable"] if mounted else ["--fakeroot", "--pid"]
    options += ["--no-mount", ",".join(hidden)]
    for layer in lowers:
        options += ["--overlay", f"{layer}:ro"]
    for bind in binds:
        options += ["--bind", bind]
    return [*options, image, *command]


def step_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """How the host process of a step differs from `environment`; None unsets a variable.

    The step gets the variables that only `%post` has, which say where labels are collected.
    """
    names = ("APPTAINER_LABELS", "SINGULARITY_LABELS")
    labels = {f"{family[:-1]}ENV_{name}": BUILD_LABELS for family in _FAMILIES for name in names}
    return {**without_options(environment), **labels}


def packing_limits(cores: int | None, memory: int | None) -> list[str]:
    """Arguments of mksquashfs for so many cores and bytes of memory; None for as much as there is."""
    limits = ["-processors", str(cores)] if cores is not None else []
    return [*limits, *(["-mem", f"{memory >> 20}M"] if memory is not None else [])]


def without_binds() -> dict[str, str | None]:
    """Variables that keep the user's binds and GPU out of a container: their destination may not exist in its image."""
    return {f"{family}{name}": None for family in _FAMILIES for name in _BINDS}


def without_options(environment: Mapping[str, str] = os.environ) -> dict[str, None]:
    """The variables of `environment` to be unset so that none gives `exec` an option which `build` does not have.

    With APPTAINER_WRITABLE_TMPFS, COMPAT or UNSQUASH of a user's shell, the runtime takes no writable overlay.
    """
    named = ((name, family) for name in environment for family in _FAMILIES if name.startswith(family))
    return {name: None for name, family in named if name.removeprefix(family) not in _KEPT_FOR_STEPS}


def without_network(product: str) -> dict[str, str]:
    """Variables of the runtime's process that leave a container only its loopback device: `--net --network none`.

    `build` has no such options, but hands both to `%post`, for any user (tried with Apptainer 1.4.5).
    """
    return {f"{product.upper()}_NET": "true", f"{product.upper()}_NETWORK": "none"}


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


def output_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables of the host process with which Python in the container writes each line of its output at once.

    Python buffers 8 KiB of what it prints into a file or a pipe; a program that a signal ends loses them. A value in
    `environment` stays, even an empty one, and so does one of the image: the runtime hands the variable on, and the
    image's own scripts run after that.
    """
    return {} if UNBUFFERED in environment else {UNBUFFERED: "1"}


def escape(text: str) -> str:
    """`text` for the shell in which the runtime evaluates such variables: nothing in it is expanded."""
    return re.sub(f"({EXPANDED})", r"\\\1", text)
