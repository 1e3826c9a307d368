"""`ctk inspect`: the metadata of an image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.documents import images as documents
from toolkit.cli.output import print_json, print_table, print_text


def inspect(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="A SIF or a sandbox directory.")],
    definition: Annotated[
        bool, typer.Option("--definition", help="Print only the definition that it was built from.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the metadata of an image.

    Labels, ctk's record of the build, and the definition. Nothing in the image is run.

        ctk inspect trial.sif
        ctk inspect trial.sif --definition > again.def
    """
    from toolkit.builds.record import read_record
    from toolkit.inventory.formats.kinds import existing_image
    from toolkit.runtime.engine import find_runtime
    from toolkit.runtime.inspection import inspect as ask
    from toolkit.support.site import load_site

    existing_image(image)
    site = load_site()
    said = ask(find_runtime(site), image, open_work_area(site))
    record = read_record(image)
    if json:
        print_json("ctk.inspect/1", documents.inspection(image, said, record))
    elif definition:
        print_text(said.definition)
    else:
        made = (
            [("built by", f"ctk {record.tools.ctk}"), ("from", record.target), ("verdict", record.verdict or "")]
            if record
            else []
        )
        print_table(("what", "value"), [*made, *said.labels])
