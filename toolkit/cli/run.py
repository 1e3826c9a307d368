"""`ctk run`: a command in an image, as a job of it would run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.output import print_findings, print_text
from toolkit.support.errors import WrongInput

_NOT_STARTED = 255  # the runtime's exit status where it could not start the program


def run(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="A SIF or a sandbox folder.")],
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND...", help="What to run in it.")] = None,
    bind: Annotated[
        list[str] | None, typer.Option(metavar="SRC[:DST[:ro]]", help="Show a folder of the host inside; repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact command, do not run it.")] = False,
) -> None:
    """Run a command in an image, with the GPU where there is one.

        ctk run trial.sif -- python train.py --epochs 3

    The command's exit status is passed on. Where a link in this folder leads to a place that the container does not
    show, the --bind that mends it is named.
    """
    from toolkit.builds.record import recipe_of
    from toolkit.gpu.host import host_gpu
    from toolkit.inventory.programs import missing_program
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.runtime.binds import hidden_links
    from toolkit.runtime.engine import find_runtime
    from toolkit.runtime.images import existing_image
    from toolkit.runtime.options import container_environment
    from toolkit.support.processes import attach, command_line
    from toolkit.support.site import load_site
    from toolkit.support.text import path_argument

    existing_image(image)
    if not command:
        example = command_line(["ctk", "run", path_argument(image), "--", "python", "train.py"])
        raise WrongInput("there is no command to run", fix=f"Put it after two dashes: {example}")
    recipe = recipe_of(image, Catalogue.here())
    binds = [*(bind or ()), *(recipe.job.binds if recipe else ())]
    argv = find_runtime(load_site()).exec(image, command, gpu=host_gpu().present, binds=binds)
    environment = container_environment()
    if dry_run:
        print_text(command_line(argv, environment))
        return
    print_findings(hidden_links(Path.cwd(), binds), stderr=True)
    status = attach(argv, env=environment)
    if status == _NOT_STARTED:
        with suppress(WrongInput):  # an image that the runtime can start and ctk cannot read
            print_findings(filter(None, [missing_program(image, command, binds)]), stderr=True)
    raise typer.Exit(status)
