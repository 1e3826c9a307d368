"""`ctk shell`: look around in an image, or change a sandbox."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.not_started import status_of
from toolkit.cli.output import print_findings, say, suggest
from toolkit.cli.used_image import used_image


def shell(
    image: Annotated[
        Path, typer.Argument(metavar="IMAGE", help="A sandbox directory (writable) or a SIF (read-only).")
    ],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[--] [COMMAND...]", help="Command to run instead of a shell.")
    ] = None,
) -> None:
    """Open a shell in a (writable) sandbox or an image.

    In a sandbox you are root, and your changes are kept: try dependencies there, then build an image from it. The
    working directory is mounted at /mnt, and `pip install` works as in a build, also behind a private certificate
    authority.

        ctk build demo --sandbox -o sb/
        ctk shell sb/
        ctk build sb/ -o out.sif

    A SIF is read-only.
    """
    from toolkit.builds.lending import lent_to_shell
    from toolkit.builds.record import mark_changed
    from toolkit.gpu.host import host_gpu
    from toolkit.inventory.formats.layers import layers_of
    from toolkit.pins.bases.local import require_runnable
    from toolkit.pins.guard.script import PIP_SETTINGS
    from toolkit.runtime.area import area_environment
    from toolkit.runtime.commands import check_command
    from toolkit.runtime.engine import find_runtime
    from toolkit.runtime.layer_check import checked
    from toolkit.runtime.options import container_environment
    from toolkit.support.processes import attach
    from toolkit.support.site import load_site
    from toolkit.support.text import path_argument

    print_findings(used_image(image, "the shell"), stderr=True)
    require_runnable(image)
    site = load_site()
    runtime = find_runtime(site)
    sandbox = image.is_dir()
    if sandbox:
        mark_changed(image)
        say(
            f"You are root in {image}; your changes are kept. The current directory is mounted at {_PROJECT}.",
            stderr=True,
        )
        say("Leave with `exit`.", stderr=True)
        _make_mount_point(image)
    words = check_command(tuple(command)) if command else ("/bin/sh", "-c", _SHELL)
    inside = checked(words, str(image), layers_of(image).names)
    argv = runtime.exec(
        image,
        inside,
        gpu=not sandbox and host_gpu().present,
        binds=[f".:{_PROJECT}"] if sandbox else (),
        writable=sandbox,
        directory=_PROJECT if sandbox else None,
    )
    area = open_work_area(site)
    area.create()
    lent: AbstractContextManager[dict[str, str]] = lent_to_shell(_SHARED) if sandbox else nullcontext({})
    with lent as certificates:
        variables = {**PIP_SETTINGS, **certificates} if sandbox else {}
        environment = {**area_environment(area), **container_environment(**variables)}
        status = attach(argv, env=environment)
        if command:
            by_shell = inside != list(words)
            status = status_of(status, runtime, image, words, binds=(), environment=environment, by_shell=by_shell)
    if sandbox and status == 0:
        suggest(["ctk", "build", f"{path_argument(image)}/", "-o", "NAME.sif"])
    raise typer.Exit(status)


# The runtime binds nothing where the image has no such directory, and cannot make one in a sandbox that is writable:
# the project's own path does not exist, this one is in every image that keeps to the file system's standard.
_PROJECT = "/mnt"
_SHARED = Path("/tmp")  # noqa: S108 - the runtime shows this directory of the host inside


def _make_mount_point(sandbox: Path) -> None:
    place = sandbox / _PROJECT.lstrip("/")
    if not os.path.lexists(place):
        place.mkdir()
        place.chmod(0o755)  # whatever the umask: others run the image


# The image decides whether there is a bash; a login name in the prompt would be root's or nobody's.
_SHELL = "if command -v bash >/dev/null 2>&1; then exec bash --norc; else exec sh; fi"
