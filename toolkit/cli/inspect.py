"""`ctk inspect`: the metadata of an image, and the recipe and lock that it was built from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.documents import images as documents
from toolkit.cli.output import print_findings, print_json, print_pairs, print_text, say, suggest
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.builds.record import Record


def inspect(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="A SIF or a sandbox directory.")],
    definition: Annotated[
        bool, typer.Option("--definition", help="Print only the definition that it was built from.")
    ] = False,
    recipe: Annotated[
        bool, typer.Option("--recipe", help="Print only the recipe that it was built from. With --lock: needs -o.")
    ] = False,
    lock: Annotated[
        bool, typer.Option("--lock", help="Print only the lock that it was built from. With --recipe: needs -o.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write the recipe or the lock to DIR, as NAME.toml or NAME.lock.toml, instead of printing it.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --output replace existing files.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the metadata of an image.

    Labels, ctk's record of the build, and the definition. Nothing in the image is run.

    An image of a recipe also holds the recipe, without its [job] resources, and the lock. Written to a directory
    called defs, they are a project: `ctk build NAME` next to it builds an image with the same packages.

        ctk inspect trial.sif
        ctk inspect trial.sif --definition > again.def
        ctk inspect keras-bert.sif --recipe --lock -o old/defs
    """
    from toolkit.builds.record import checked_record
    from toolkit.inventory.formats.kinds import existing_image

    if sum((definition, recipe or lock, json)) > 1 or (recipe and lock and output is None):
        text = "choose one of --definition, --recipe, --lock and --json"
        raise WrongInput(text, fix="--recipe and --lock can be combined with -o DIR.")
    if (output is not None or force) and not (recipe or lock):
        raise WrongInput("--output and --force are for --recipe and --lock", fix="Add --recipe, --lock or both.")
    if force and output is None:
        raise WrongInput("--force applies only to --output", fix="Add -o DIR.")
    _refuse_damaged(existing_image(image))
    if recipe or lock:
        _give_back(image, checked_record(image), output, recipe=recipe, lock=lock, force=force)
        return
    from toolkit.runtime.engine import find_runtime
    from toolkit.runtime.inspection import inspect as ask
    from toolkit.support.site import load_site

    record = checked_record(image)
    site = load_site()
    said = ask(find_runtime(site), image, open_work_area(site))
    if json:
        print_json("ctk.inspect/1", documents.inspection(image, said, record))
    elif definition:
        print_text(said.definition)
    else:
        rows, columns = _rows(record) if record else [], ("what", "value")
        if sys.stdout.isatty():
            print_pairs(columns, rows)
            print_pairs(columns, said.labels, title="Labels:")
        else:
            print_pairs(columns, [*rows, *said.labels])


def _refuse_damaged(image: Path) -> None:
    """Raise WrongInput for a damaged file: the runtime's words for it are unclear. Its content is not read."""
    from toolkit.inventory.formats.images import open_image

    try:
        with open_image(image):
            pass
    except WrongInput as error:
        if error.code == "corrupt-image":
            raise


def _rows(record: Record) -> list[tuple[str, str]]:
    rows = [
        ("built by", f"ctk {record.tools.ctk}"),
        ("from", record.target),
        ("verdict", record.verdict or ""),
        ("base", record.base.name if record.base else ""),
        ("digest", (record.base.digest or "") if record.base else ""),
    ]
    return [row for row in rows if row[1]] + [("layer", name) for name in record.layers]


def _give_back(
    image: Path, record: Record | None, output: Path | None, *, recipe: bool, lock: bool, force: bool
) -> None:
    """Print or write the recipe and the lock of an image."""
    from toolkit.builds.restore import lock_text, recipe_text, restore
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.support.paths import shipped

    if output is None:
        print_text(recipe_text(image, record) if recipe else lock_text(image, record))
        return
    catalogue = Catalogue(output.absolute(), shipped("defs"))
    done = restore(image, record, catalogue, recipe=recipe, lock=lock, force=force)
    for path in done.written:
        say(f"Wrote {_short(path)}")
    print_findings(done.warnings, stderr=True)
    if done.missing:
        say("The image does not hold these files, which the recipe names. Put them there before you build:")
    for path in done.missing:
        say(f"  {_short(path)}")
    if record is not None and record.recipe_name is not None:
        _suggest_build(record.recipe_name, output)


def _suggest_build(name: str, directory: Path) -> None:
    """The build from a directory that `ctk build` reads: the one called `defs`."""
    from toolkit.support.processes import command_line

    build = command_line(["ctk", "build", name])
    parent = _short(directory.absolute().parent)
    if directory.absolute().name != "defs":
        say(f"`ctk build` reads recipes from a directory called defs: rename {_short(directory.absolute())} to build.")
    elif parent == ".":
        suggest(build)
    else:
        suggest(f"{command_line(['cd', '--', parent])} && {build}")


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
