"""`ctk shell`: look around in an image, or change a sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.output import say, suggest


def shell(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="A sandbox folder, or a SIF to look around in.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="Run this instead of a shell.")
    ] = None,
) -> None:
    """Open a shell in a sandbox, writable, or in an image.

    In a sandbox you are root, and what you change stays: try dependencies out there, then build an image of it.

        ctk build demo --sandbox -o sb/
        ctk shell sb/
        ctk build sb/ -o out.sif

    A SIF cannot be changed: its shell is for looking around.
    """
    from toolkit.builds.record import mark_changed
    from toolkit.gpu.host import host_gpu
    from toolkit.runtime.engine import find_runtime
    from toolkit.runtime.images import existing_image
    from toolkit.runtime.options import container_environment
    from toolkit.support.processes import attach
    from toolkit.support.site import load_site
    from toolkit.support.text import path_argument

    existing_image(image)
    site = load_site()
    runtime = find_runtime(site)
    sandbox = image.is_dir()
    if sandbox:
        mark_changed(image)
        say(f"You are root in {image}; what you change there stays. Leave with `exit`.", stderr=True)
    argv = runtime.exec(
        image, command or ["/bin/sh", "-c", _SHELL], gpu=not sandbox and host_gpu().present, writable=sandbox
    )
    area = open_work_area(site)
    area.create()
    status = attach(argv, env={**area.environment(), **container_environment()})
    if sandbox and status == 0:
        suggest(["ctk", "build", f"{path_argument(image)}/", "-o", "NAME.sif"])
    raise typer.Exit(status)


# The image decides whether there is a bash; a login name in the prompt would be root's or nobody's.
_SHELL = "if command -v bash >/dev/null 2>&1; then exec bash --norc; else exec sh; fi"
