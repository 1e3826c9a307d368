"""Whether an image holds the program that a command starts with: a lookup on the image's PATH; nothing is run."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from typing import TYPE_CHECKING

from toolkit.inventory.contents.environment import read_environment
from toolkit.inventory.formats.images import open_image
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.inventory.formats.rootfs import Rootfs

COMMAND_NOT_IN_IMAGE = "command-not-in-image"
# An absolute path elsewhere may lie in a directory of the host that a job mounts.
_OF_THE_IMAGE = ("/bin/", "/sbin/", "/usr/")


def missing_program(image: Path, command: Sequence[str], binds: Sequence[str] = ()) -> Finding | None:
    """An error where `image` does not hold the program of `command`; None if it does, or may get it at run time.

    `binds` are the job's (`SRC[:DST[:ro]]`). Raises WrongInput if the image cannot be read.
    """
    if not command:
        return None
    with open_image(image) as rootfs:
        variables, uncertain = read_environment(rootfs)
        path = variables["PATH"]
        if "/" not in command[0] and any(variable.name == "PATH" and variable.open for variable in uncertain):
            return None  # a script makes PATH when the image runs
        if _may_run(rootfs, command[0], path, [(*bind.split(":"), "")[1] or bind.split(":")[0] for bind in binds]):
            return None
    program = posixpath.basename(command[0])
    if program.startswith("python"):
        fix = 'Add Python to the recipe: apt = ["python3"]. An image with python3 gets `python` as well.'
    else:
        fix = "Correct the command (`[job] command` of a recipe), or add its package (`apt`, `packages`)."
    message = f"the image has no program {command[0]}, which the command starts (searched: {path})"
    return Finding(COMMAND_NOT_IN_IMAGE, Severity.ERROR, message, fix)


def require_line_buffering(image: Path) -> None:
    """Raise WrongInput if `--line-buffered` cannot work, since `image` has no stdbuf."""
    missing = None
    with suppress(WrongInput):  # an image that the runtime can start and ctk cannot read
        missing = missing_program(image, ("stdbuf",))
    if missing is not None:
        raise WrongInput(
            f"--line-buffered needs the program stdbuf, which {image} does not have",
            fix='Add it to the recipe and build again: apt = ["coreutils"] (Alpine: apk add coreutils).\n'
            "Python does not need the option, and a program that writes its lines at once does not either: omit it.",
            code=COMMAND_NOT_IN_IMAGE,
        )


def _may_run(rootfs: Rootfs, program: str, path: str, mounted: Sequence[str]) -> bool:
    if "/" in program:
        places = [program] if program.startswith(_OF_THE_IMAGE) else [""]
    else:
        places = [posixpath.join(directory, program) for directory in path.split(":")]
    # What is relative depends on the job's working directory, and what is mounted on the host.
    return any(
        not place.startswith("/") or rootfs.is_file(place) or any(_is_below(place, target) for target in mounted)
        for place in places
    )


def _is_below(place: str, directory: str) -> bool:
    return posixpath.normpath(place).startswith(posixpath.normpath(directory).rstrip("/") + "/")
