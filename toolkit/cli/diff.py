"""`ctk diff`: the packages of two images compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.documents import images as documents
from toolkit.cli.output import live_steps, print_json, print_table, say
from toolkit.cli.used_image import require_undamaged


def diff(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="An image: .sif, sandbox directory or squashfs file.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The image to compare it with.")],
    files: Annotated[bool, typer.Option("--files", help="Also hash every file of Python's site directories.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare the packages of two images.

    Compares Python interpreters, installed distributions with their versions and recorded file hashes, and the
    packages of apt and conda. --files also finds files that were changed or added by hand, and the code of
    distributions without a RECORD. Neither image is run, and no container runtime is needed. Bytecode and logs are
    ignored.

    Exit status 0: no difference; 1: they differ.

        ctk diff yesterday.sif today.sif
        ctk diff trial.sif trial-sandbox/ --files
    """
    from toolkit.inventory.contents.diff import compare
    from toolkit.inventory.formats.images import open_image

    for image in (first, second):  # the records in a damaged image may be whole where the files are not
        require_undamaged(image)
    with live_steps("Comparing"), open_image(first) as former, open_image(second) as latter:
        differences = compare(former, latter, hash_files=files)
    if json:
        print_json("ctk.diff/1", documents.differences(first, second, differences))
    elif differences:
        print_table(
            ("kind", "name", "where", str(first), str(second)),
            [
                (difference.kind, difference.name, difference.where, difference.first or "-", difference.second or "-")
                for difference in differences
            ],
        )
    else:
        say("The same interpreters, distributions, versions, file hashes and packages.")
    if differences:
        raise typer.Exit(1)
