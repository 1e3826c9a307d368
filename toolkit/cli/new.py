"""`ctk new`: a recipe written without an editor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base
from toolkit.cli.output import print_findings, print_json, say, suggest
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from toolkit.pins.authoring.proposal import Proposal
    from toolkit.recipes.model import Base

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE", help="Name of the recipe: lower-case letters, digits, dots, hyphens, underscores."
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A script, a directory of code, a notebook, requirements.txt, conda's environment.yml, "
            "pyproject.toml or setup.cfg.",
        ),
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option(metavar="EXTRA", help="With pyproject.toml or setup.cfg: also this extra; repeatable."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Base to start from, a name that `ctk bases` lists. [default: chosen by the framework]",
            autocompletion=complete_base,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing recipe of that name in ./defs.")] = False,
    json: _Json = False,
) -> None:
    """Write a recipe, optionally from the imports in a script.

    --from finds the direct dependencies in your code's imports, or in a list of packages. The GPU framework determines
    the base and is not listed itself. Versions are written only if the list has them, and unknown imports are printed.
    With --base, only what that base provides is left out.

        ctk new mine --from train.py
        ctk new mine --from requirements.txt      from `pip freeze`: direct dependencies only
        ctk new mine --from pyproject.toml        your own project is installed, too
        ctk new mine --base pytorch-2.6           an empty recipe, to extend with `ctk add`
    """
    from toolkit.pins.authoring.edit import recipe_text
    from toolkit.recipes.catalogue import Catalogue, is_recipe_name
    from toolkit.support.files import refuse_link, write_atomically
    from toolkit.support.text import did_you_mean

    if not is_recipe_name(name):
        raise WrongInput(
            f"{name!r} is not a valid recipe name: use lower-case letters, digits, dots, dashes and "
            "underscores; `bases` and names ending in `.lock` are reserved"
        )
    catalogue = Catalogue.here()
    bases = catalogue.bases()
    if base is not None and base not in bases:
        raise WrongInput(
            f'there is no base "{base}".{did_you_mean(base, bases)}',
            fix="`ctk bases` lists them; add your own to ./defs/bases.toml. `ctk build --base` accepts any image.",
        )
    path = catalogue.own / f"{name}.toml"
    refuse_link(path)
    if path.exists() and not force:
        raise WrongInput(f"{path} already exists", fix="Choose another name, or add --force.")
    proposal = _propose(source, bases, base, extra or [])
    chosen = proposal.base
    if chosen is None and (errors := [finding for finding in proposal.findings if finding.severity is Severity.ERROR]):
        raise CheckFailed(errors[0].message, fix=errors[0].fix, code=errors[0].code)
    if chosen is None:
        raise WrongInput("no base could be inferred", fix="Choose one with --base; `ctk bases` lists them.")
    project = proposal.project
    beside = os.path.relpath(source.absolute().parent, catalogue.own) if source and project else ""
    text = recipe_text(
        base=chosen,
        packages=proposal.packages,
        command=proposal.command,
        gpus=int(proposal.uses_gpu),
        indexes=proposal.indexes,
        files=[(f"{beside}/{path}", target) for path, target in project.files] if project else [],
        post=project.post if project else "",
    )
    catalogue.own.mkdir(exist_ok=True)
    write_atomically(path, text, keep_mode=True)
    if json:
        document = {"path": str(path), "base": chosen, "packages": list(proposal.packages)}
        print_json("ctk.new/1", document, proposal.findings)
        return
    print_findings(proposal.findings)
    say(f"Written to {path}: base {chosen}, packages {', '.join(proposal.packages) or '(none)'}.")
    suggest(f"ctk build {name}")


def _propose(source: Path | None, bases: dict[str, Base], base: str | None, extras: list[str]) -> Proposal:
    from toolkit.pins.authoring.proposal import Proposal
    from toolkit.pins.authoring.reading import Bases, propose
    from toolkit.pins.index.uv import open_uv
    from toolkit.support.site import load_site

    if source is None:
        framework = bases[base].framework if base else None
        return Proposal(base, (), (), uses_gpu=framework is not None)
    return propose(source, Bases(bases, base), lambda: open_uv(open_work_area(load_site()).path), extras)
