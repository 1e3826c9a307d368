"""`ctk new`: a recipe written without an editor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base
from toolkit.cli.output import print_findings, print_json, say, suggest
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.pins.proposal import Proposal
    from toolkit.recipes.model import Base

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the recipe will be called: small letters.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A script, a folder of code, requirements.txt, or conda's environment.yml.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Start from this: a name of `ctk bases`. [default: by the framework that is used]",
            autocompletion=complete_base,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a recipe of that name in ./defs.")] = False,
    json: _Json = False,
) -> None:
    """Write a recipe, from the imports of a script if you like.

    With --from the direct packages are read out of what you have: the imports of your code, or a list. The GPU
    framework chooses the base and is not listed itself; versions are not invented. What ctk does not know it says.
    With --base only what that base brings is left out.

        ctk new mine --from train.py
        ctk new mine --from requirements.txt      of a `pip freeze` only the direct ones
        ctk new mine --base pytorch-2.6           an empty one, to `ctk add mine timm`
    """
    from toolkit.pins.edit import recipe_text
    from toolkit.recipes.catalogue import Catalogue, is_recipe_name
    from toolkit.support.files import refuse_link, write_atomically
    from toolkit.support.text import did_you_mean, one_line

    if not is_recipe_name(name):
        raise WrongInput(
            f"{name!r} cannot be a recipe's name: small letters, digits, dots, dashes, underscores; "
            "neither `bases` nor anything that ends in `.lock`"
        )
    catalogue = Catalogue.here()
    bases = catalogue.bases()
    if base is not None and base not in bases:
        raise WrongInput(
            f'there is no base "{base}".{did_you_mean(base, bases)}',
            fix="`ctk bases` lists them; your own go into ./defs/bases.toml. `ctk build --base` takes any image.",
        )
    path = catalogue.own / f"{name}.toml"
    refuse_link(path)
    if path.exists() and not force:
        raise WrongInput(f"{path} is there already", fix="Choose another name, or add --force.")
    proposal = _propose(source, bases, base)
    chosen = proposal.base
    if chosen is None:
        raise WrongInput("nothing says which base to start from", fix="Say it with --base; `ctk bases` lists them.")
    command: tuple[str, ...] = ()
    if source is not None and source.suffix == ".py":
        command = ("python", one_line(str(source), "the script's name"))  # a recipe is UTF-8, a name need not be
    text = recipe_text(base=chosen, packages=proposal.packages, command=command)
    catalogue.own.mkdir(exist_ok=True)
    write_atomically(path, text, keep_mode=True)
    if json:
        document = {"path": str(path), "base": chosen, "packages": list(proposal.packages)}
        print_json("ctk.new/1", document, proposal.findings)
        return
    print_findings(proposal.findings)
    say(f"Written to {path}: base {chosen}, packages {', '.join(proposal.packages) or '(none)'}.")
    suggest(f"ctk build {name}")


def _propose(source: Path | None, bases: dict[str, Base], base: str | None) -> Proposal:
    from toolkit.inventory.frameworks import knowledge
    from toolkit.pins.freeze import direct_requirements
    from toolkit.pins.imports import scan_imports
    from toolkit.pins.names import names
    from toolkit.pins.proposal import Proposal, propose_from_imports, propose_from_list
    from toolkit.pins.uv import open_uv
    from toolkit.pins.wishlists import read_conda_environment, read_requirements
    from toolkit.support.site import load_site

    if source is None:
        return Proposal(base, (), ())
    if not source.exists():
        raise WrongInput(f"there is no {source}")
    if source.is_dir() or source.suffix == ".py":
        return propose_from_imports(scan_imports(source), names(), knowledge(), bases, base)
    if source.suffix in (".yml", ".yaml"):
        found = read_conda_environment(source)
    elif source.suffix == ".txt":
        found = read_requirements(source)
    else:
        raise WrongInput(f"{source} is no script (.py), no folder, no requirements.txt and no environment.yml")
    if not found.frozen:
        return propose_from_list(found.requirements, names(), knowledge(), bases, found.findings(), base)
    requirements, more = direct_requirements(open_uv(open_work_area(load_site()).path), found.requirements)
    return propose_from_list(requirements, names(), knowledge(), bases, (*found.findings(), *more), base)
