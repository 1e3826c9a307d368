"""`ctk bases check` and `ctk bases add`: the digests of bases, from their registries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.completion import complete_base
from toolkit.cli.output import live_steps, print_findings, print_json, print_table, print_text, say, suggest
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.pins.bases.check import Checked
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Base

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Bases to check. [default: all of a registry]", autocompletion=complete_base
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Record what the registry says in ./defs/bases.toml.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=1, metavar="SECONDS", help="Time limit for all.")] = 60,
    json: _Json = False,
) -> None:
    """Ask the registries whether the digests of bases are still those of their tags.

    A base is `same`, `moved` (its tag names another image now), `gone`, `unpinned` (no digest is recorded),
    `login-needed` or `unreachable`. A recorded digest of one platform within the tag's index is the same. Builds start
    from the recorded digest, even if its tag moved.

    With --write, digest, size, architectures and date are recorded. A shipped base is copied to ./defs/bases.toml,
    where your entry replaces it; comments are kept.

        ctk bases check ours-2.8
        ctk bases check ours-2.8 --write

    Exit status 1: a base moved or is gone. Exit status 4: a registry could not be asked.
    """
    from toolkit.pins.bases.check import check_all, exit_status
    from toolkit.recipes.catalogue import Catalogue

    catalogue = Catalogue.here()
    wanted = _of_registries(catalogue.bases(), names or [])
    with live_steps(f"Asking {_registries(wanted)}") as on_step:
        results = check_all(wanted, timeout=timeout, on_step=on_step)
    written = _write(catalogue, results) if write else None
    findings = [finding for result in results if (finding := result.finding()) is not None]
    if json:
        from toolkit.cli.documents.registry import checked_base

        document = {"bases": list(map(checked_base, results)), "written": str(written) if written else None}
        print_json("ctk.bases-check/1", document, findings)
    else:
        print_table(("base", "state", "digest", "names", "architectures", "size"), map(_row, results))
        print_findings(findings, stderr=True)
        if write:
            say(f"Written: {written}." if written else "Nothing new to write.")
    raise typer.Exit(exit_status(results))


def _of_registries(bases: dict[str, Base], names: Sequence[str]) -> list[Base]:
    from toolkit.recipes.model import Bootstrap
    from toolkit.support.text import did_you_mean

    for name in names:
        if name not in bases:
            raise WrongInput(f'there is no base "{name}".{did_you_mean(name, bases)}', fix="`ctk bases` lists them.")
        if bases[name].bootstrap != Bootstrap.DOCKER:
            raise WrongInput(f"the base {name} is not in a registry: its bootstrap agent is {bases[name].bootstrap}")
    wanted = list(dict.fromkeys(names)) or list(bases)
    return [bases[name] for name in wanted if bases[name].bootstrap == Bootstrap.DOCKER]


def _registries(bases: Sequence[Base]) -> str:
    from toolkit.pins.bases.registry import parse_reference

    return ", ".join(dict.fromkeys(parse_reference(base.reference).host for base in bases)) or "no registry"


def _row(found: Checked) -> tuple[str, ...]:
    from toolkit.support.files import format_size

    image = found.image
    if image is None:
        return found.base.name, found.state, "", "", "", ""
    size = format_size(image.size) if image.size else ""
    return found.base.name, found.state, image.digest, image.digest_of, ", ".join(image.architectures), size


def _write(catalogue: Catalogue, results: Sequence[Checked]) -> Path | None:
    from datetime import datetime, timezone

    from toolkit.pins.bases.own_file import change_of, own_names, write_changes

    own, today = own_names(catalogue), datetime.now(timezone.utc).date()
    changes = [change for found in results if (change := change_of(found, own, today)) is not None]
    return write_changes(catalogue, changes) if changes else None


def add(
    reference: Annotated[
        str, typer.Argument(metavar="REF", help="An image of a registry: [docker://]REPOSITORY:TAG[@sha256:…].")
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the base. [default: from REF]")
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option("--image", metavar="FILE", help="The same image as a SIF or a sandbox, to read its facts from."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the entry, write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a base of that name.")] = False,
    json: _Json = False,
) -> None:
    """Add an image of a registry to ./defs/bases.toml, pinned by its digest.

    The registry tells digest, size and architectures. Python, framework, CUDA and the rest are read from the image's
    files, if it is here: with --image, or because `ctk build` pulled it before. What is unknown stays out.

        ctk bases add pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime --dry-run
    """
    from toolkit.pins.bases.new_entry import from_registry, name_of, requested
    from toolkit.pins.bases.own_file import Change, changed, table_of, write_changes
    from toolkit.recipes.catalogue import Catalogue

    wanted = requested(reference)
    chosen = name_of(wanted) if name is None else name
    catalogue = Catalogue.here()
    _require_free(chosen, catalogue, force=force)
    with live_steps(f"Asking {_registries([wanted])}") as on_step:
        base, findings = from_registry(wanted, chosen)
        if (path := image or _pulled(base)) is not None:
            on_step(f"reading {path}")
            base = _with_facts(base, path)
    change = Change(chosen, table_of(base), whole=True, new=not force)
    entry = changed("", [change])
    written = None if dry_run else write_changes(catalogue, [change])
    if json:
        document = {"name": chosen, "image": base.pinned_reference, "entry": entry, "written": written and str(written)}
        print_json("ctk.bases-add/1", document, findings)
        return
    print_findings(findings, stderr=True)
    if written is None:
        print_text(entry)
        return
    say(f"Written to {written}: {chosen}, {base.pinned_reference}.")
    if path is None:
        say(f"The image is not here: `--image FILE` reads its Python, framework and CUDA for the entry {chosen}.")
    suggest(["ctk", "new", "mine", "--base", chosen])


def _require_free(name: str, catalogue: Catalogue, *, force: bool) -> None:
    from toolkit.recipes.fields import NAME, NAME_HINT

    if not NAME.fullmatch(name):
        raise WrongInput(f"{name!r} is not a valid name of a base: {NAME_HINT}")
    if not force and name in catalogue.bases():
        raise WrongInput(f'there is already a base "{name}"', fix="Choose another --name, or add --force.")


def _pulled(base: Base) -> Path | None:
    """The image in the work area, if a build pulled this digest."""
    from toolkit.builds.bases import kept_base
    from toolkit.cli.area import open_work_area
    from toolkit.support.site import load_site

    path = kept_base(base.digest or "", open_work_area(load_site()))
    return path if path.is_file() else None


def _with_facts(base: Base, path: Path) -> Base:
    from dataclasses import replace

    from toolkit.gpu.base_facts import describe_base
    from toolkit.gpu.gather import gather_image_facts
    from toolkit.inventory.formats.images import open_image

    with open_image(path) as rootfs:
        facts = gather_image_facts(rootfs)
    return replace(describe_base(base, facts), source=f"{base.source}; the files of the image")
