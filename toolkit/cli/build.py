"""`ctk build`: from targets to images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.build_report import print_outcomes
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.copies import AllowFile
from toolkit.cli.locks import AllowBrokenBase
from toolkit.cli.output import print_json
from toolkit.support.errors import WrongInput

_COMPRESSIONS = ("zstd", "gzip")


def build(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET...",
            help="A recipe's name, FILE.def, a sandbox directory (with a slash), docker://REF, docker-archive:FILE, "
            "oci:DIR, or IMAGE.sif with --flat; several are built one after the other.",
            autocompletion=complete_recipe,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Path of the image. [default: ./NAME.sif; ./NAME-flat.sif from IMAGE.sif]",
            rich_help_panel="Image",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Base to start from instead: a name that `ctk bases` lists, FILE.sif, a sandbox, docker://REF, "
            "docker-archive:FILE or oci:DIR.",
            autocompletion=complete_base,
            rich_help_panel="Image",
        ),
    ] = None,
    sandbox: Annotated[
        bool,
        typer.Option("--sandbox", help="Build a sandbox, a directory that can be changed.", rich_help_panel="Image"),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Build even if nothing has changed, and replace any output; a symlink's target is kept.",
            rich_help_panel="Image",
        ),
    ] = False,
    allow_file: AllowFile = None,
    allow_import_failure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Do not import this package at the end of this and later builds; repeatable.",
            rich_help_panel="Checks",
        ),
    ] = None,
    allow_broken_base: AllowBrokenBase = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the build as a script for `sh`; build nothing.")
    ] = False,
    locked: Annotated[
        bool,
        typer.Option(
            "--locked", help="Refuse a missing or outdated lock (exit status 1), as in CI.", rich_help_panel="Checks"
        ),
    ] = False,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Use only what is on this host (`ctk fetch`); steps get no network.",
            rich_help_panel="Checks",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the output of the build as it runs.")] = False,
    compression: Annotated[
        str,
        typer.Option(
            metavar="zstd|gzip",
            help="Compression of the SIF; gzip is slower, for kernels before 4.14.",
            rich_help_panel="Image",
        ),
    ] = "zstd",
    layered: Annotated[
        bool | None,
        typer.Option(
            "--layered/--flat",
            help="Add layers to a copy of the base, which takes seconds; or pack one partition, the form for sharing. "
            "[default: layered where base and host allow it]",
            show_default=False,
            rich_help_panel="Image",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Build an image from a recipe, a .def, a sandbox or a registry.

        ctk build keras-bert                 the recipe, to ./keras-bert.sif
        ctk build keras-bert --base my.sif   on an image on this machine
        ctk build demo --sandbox -o sb/      a directory that you can change
        ctk build sb/ -o out.sif             an image of that directory, unchanged
        ctk build a.sif --flat -o b.sif      one partition of a layered image
        ctk build demo keras-bert            two recipes, one after the other

    The recipe's lock is written or updated first; versions that still fit are kept. If recipe, lock, base and files
    are unchanged since the image was built, nothing is built; --force builds again.

    A recipe's image is layered where base and host allow it: a copy of the base with small layers, made in seconds.
    `ctk run` and job scripts do not start the program if a layer is missing. --flat makes one partition, for sharing.

    No root is needed. An image that ctk built from the same target is replaced when the new one is complete; any other
    file of that name is kept, unless you give --force. The log of the build is written next to the image.

    At the end, the build imports the recipe's packages and the base's frameworks, without a GPU. If an import fails,
    the build fails with exit status 1. --allow-import-failure is for a package that needs a GPU or a licence file to
    be imported; the recipe records it in [imports] skip. `ctk try` does the same imports without building an image.
    A command in [check] of the recipe runs after the imports, without a GPU; if it fails, so does the build (status 1).

    Several targets are built one after the other, each with its own log. If one fails, the others are built anyway, and
    the exit status is the highest one. --output, --dry-run and --allow-import-failure need a single target.

    If the image lacks the program of the recipe's [job] command, it is kept, and the exit status is 1.

    Files that [[files]] copies from outside the project are listed first. The project is the directory that contains
    the recipe's defs/. A private file (mode 0600, ~/.ssh and the like) needs --allow-file.
    """
    from toolkit.cli.building import Wanted, build_all, build_one
    from toolkit.runtime.engine import BuildOptions
    from toolkit.support.site import load_site

    if compression not in _COMPRESSIONS:
        raise WrongInput(f"--compression is zstd or gzip, not {compression!r}")
    if dry_run and layered:
        raise WrongInput("--dry-run prints the build of a flat image", fix="Omit --layered, or --dry-run.")
    targets = list(dict.fromkeys(targets))
    if len(targets) > 1:
        only_one = {"--output": output, "--dry-run": dry_run, "--allow-import-failure": allow_import_failure}
        if refused := [option for option, value in only_one.items() if value]:
            raise WrongInput(
                f"{refused[0]} applies to one target, and there are {len(targets)}",
                fix=f"Build each target with its own command, or omit {refused[0]}.",
            )
    site = load_site()
    limits = BuildOptions.of_site(site)
    wanted = Wanted(
        replace(limits, sandbox=sandbox, compression=compression, layered=layered),
        site,
        output=output,
        base=base,
        force=force,
        allow_file=allow_file or (),
        allow_import_failure=allow_import_failure or (),
        allow_broken_base=allow_broken_base,
        dry_run=dry_run,
        locked=locked,
        offline=offline,
        verbose=verbose,
        json=json,
    )
    if len(targets) > 1:
        outcomes = build_all(targets, wanted)
        print_outcomes(outcomes, json=json)
        raise typer.Exit(max(outcome.exit_status for outcome in outcomes))
    outcome = build_one(targets[0], wanted)
    if outcome is not None and json:
        print_json("ctk.build/1", outcome.document or {}, outcome.findings)
    if outcome is not None and outcome.exit_status != 0:
        raise typer.Exit(outcome.exit_status)
