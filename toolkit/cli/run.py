"""`ctk run`: a command in an image, as a job of it would run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.not_started import status_of
from toolkit.cli.output import print_findings, print_text
from toolkit.cli.used_image import used_image
from toolkit.support.errors import WrongInput


def run(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="A SIF or a sandbox directory.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[--] COMMAND...", help="Command to run in the image.")
    ] = None,
    shell: Annotated[
        str | None, typer.Option(metavar="LINE", help="Command line for the image's shell, instead of COMMAND.")
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(metavar="SRC[:DST[:ro]]", help="Bind a directory of the host; repeatable."),
    ] = None,
    line_buffering: Annotated[
        bool,
        typer.Option(
            "--line-buffered", help="Write each line of a C program at once, also to a pipe (stdbuf -oL of the image)."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact command; run nothing.")] = False,
) -> None:
    """Run a command in an image, with the GPU if there is one.

        ctk run trial.sif python train.py --epochs 3
        ctk run trial.sif --shell 'python train.py | sort > out.txt'

    Options of ctk come before the command; all words after the command's name belong to the command. Its exit status
    is returned; it is 127 if the image has no such program, 126 if the program cannot be executed, and 3 if this host
    does not mount a layer of the image; the program is then not started. The container
    shares this host's environment variables, home, working directory, /tmp and devices; Python ignores ~/.local. If a
    symlink in the working directory points outside these, ctk prints the --bind that it needs.
    """
    from toolkit.builds.record import recipe_of
    from toolkit.gpu.host import host_gpu
    from toolkit.inventory.contents.programs import require_line_buffering
    from toolkit.inventory.formats.layers import layers_of
    from toolkit.pins.bases.local import require_runnable
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.runtime.binds import hidden_links
    from toolkit.runtime.commands import check_command, chosen_command, line_buffered
    from toolkit.runtime.engine import find_runtime
    from toolkit.runtime.layer_check import checked
    from toolkit.runtime.options import container_environment, output_environment
    from toolkit.support.processes import attach, command_line
    from toolkit.support.site import load_site
    from toolkit.support.text import path_argument

    doubts = used_image(image, "the container")
    words = chosen_command(tuple(command or ()), shell)
    if not words:
        example = command_line(["ctk", "run", path_argument(image), "python", "train.py"])
        raise WrongInput("there is no command to run", fix=f"For example: {example}")
    check_command(words)
    if line_buffering:
        require_line_buffering(image)
    catalogue = Catalogue.here()
    recipe = recipe_of(image, catalogue)
    binds = [*(bind or ()), *(recipe.job.binds if recipe else ())]
    runtime = find_runtime(load_site())
    inside = checked(line_buffered(words) if line_buffering else words, str(image), layers_of(image).names)
    argv = runtime.exec(image, inside, gpu=host_gpu().present, binds=binds)
    environment = container_environment()
    if not sys.stdout.isatty():
        environment |= output_environment()
    if dry_run:
        print_text(command_line(argv, environment))
        return
    require_runnable(image)
    if recipe is not None:
        from toolkit.builds.outdated import outdated

        print_findings(filter(None, [outdated(image, recipe, catalogue.own)]), stderr=True)
    print_findings((*doubts, *hidden_links(Path.cwd(), binds)), stderr=True)
    status = attach(argv, env=environment)
    by_shell = inside != list(words)
    found = status_of(status, runtime, image, words, binds=binds, environment=environment, by_shell=by_shell)
    raise typer.Exit(found)
