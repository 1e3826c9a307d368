"""`ctk new`: a recipe written without an editor."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.bases import (
    ArchOption,
    DriverOption,
    FrameworkOption,
    GpuOption,
    choose_with_wheels,
    nothing_fits,
    request_from,
    request_line,
)
from toolkit.cli.clusters import ClusterOption, machine_options
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.locks import KeepVersions
from toolkit.cli.output import print_findings, print_json, say, suggest
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from toolkit.gpu.choosing import BaseRequest
    from toolkit.pins.authoring.proposal import Proposal
    from toolkit.pins.authoring.wheels import WheelBase
    from toolkit.recipes.catalogue import Catalogue
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
            help="Base to start from: a name that `ctk bases` lists, FILE.sif, a sandbox, docker://REF, "
            "docker-archive:FILE or oci:DIR. [default: chosen by the framework]",
            autocompletion=complete_base,
        ),
    ] = None,
    framework: FrameworkOption = None,
    gpu: GpuOption = None,
    driver: DriverOption = None,
    arch: ArchOption = None,
    cluster: ClusterOption = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Copy this recipe with its script and files.",
            autocompletion=complete_recipe,
        ),
    ] = None,
    keep_versions: KeepVersions = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing recipe of that name in ./defs.")] = False,
    json: _Json = False,
) -> None:
    """Write a recipe, optionally from the imports in a script.

    --from finds the direct dependencies in your code's imports, or in a list of packages. The GPU framework determines
    the base and is not listed itself; JAX, CuPy and Chainer are listed: they come from wheels over a base without them.
    Versions are written only if the list has them, and unknown imports are printed. The versions of a `pip freeze` are
    preferences: the first lock takes them wherever the base allows, and shows where it cannot. With --base, only what
    that base provides is left out. --gpu, --driver and --arch name the machine: ctk chooses the newest base that serves
    it, and writes the machine to the recipe's `[target]`; --cluster takes them from a cluster profile. Without them, it
    chooses a base that serves most GPU types.

        ctk new mine --from train.py
        ctk new mine --from requirements.txt      from `pip freeze`: direct dependencies, its versions preferred
        ctk new mine --from pyproject.toml        your own project is installed, too
        ctk new mine --base pytorch-2.6           an empty recipe, to extend with `ctk add`
        ctk new mine --from train.py --gpu V100 --driver 535.104.05    for this machine
        ctk new tuned --like finetune             a copy of an example of `ctk list`, with its train.py
    """
    from toolkit.gpu.choosing import implied_architectures
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.pins.authoring.edit import recipe_text
    from toolkit.pins.authoring.wheels import wheel_bases
    from toolkit.recipes.architectures import host_architecture
    from toolkit.recipes.catalogue import Catalogue, is_recipe_name
    from toolkit.recipes.model import Target
    from toolkit.recipes.references import written_in
    from toolkit.support.files import refuse_link, write_atomically

    if not is_recipe_name(name):
        raise WrongInput(
            f"{name!r} is not a valid recipe name: use lower-case letters, digits, dots, dashes and "
            "underscores; `bases` and names ending in `.lock` are reserved"
        )
    catalogue = Catalogue.here()
    if keep_versions and source is None:
        raise WrongInput("--keep-versions is for the versions of a list: name it with --from")
    if like is not None:
        if source is not None or base is not None or extra or framework or gpu or driver or arch or cluster:
            raise WrongInput("--like copies a recipe as it is: use it without other options than --force and --json")
        _copy(catalogue, like, name, force=force, json=json)
        return
    bases = catalogue.bases()
    if base is not None and framework is not None:
        raise WrongInput("--base already determines the framework: use --base or --framework")
    if base is not None and base not in bases:
        own = replace(_own_base(base, bases), name=written_in(catalogue.own, base))
        bases, base = {**bases, own.name: own}, own.name
    path = catalogue.own / f"{name}.toml"
    refuse_link(path)
    if path.exists() and not force:
        raise WrongInput(f"{path} already exists", fix="Choose another name, or add --force.")
    request = request_from(framework, machine_options(cluster, gpu, driver), arch)
    with_wheels = wheel_bases(bases, knowledge())
    choice = choose_with_wheels(bases.values(), with_wheels.values(), request)
    if not choice.fitting and base is None:
        raise nothing_fits(choice, request, with_wheels.values())
    ranked = {fitting.name: fitting for fitting in choice.fitting}
    if base is None and source is None and framework is not None:
        base = choice.fitting[0].name
    wanted = f"{request.framework.name}{request.versions}" if request.framework else None
    ranked |= {base: {**bases, **with_wheels}[base]} if base else {}
    proposal = _propose(source, ranked, base, extra or [], wanted, keep_versions=keep_versions)
    chosen = proposal.base
    if base is None or base in with_wheels:
        _refuse_unserved(proposal, [*bases.values(), *with_wheels.values()], request)
    if chosen is None and (errors := [finding for finding in proposal.findings if finding.severity is Severity.ERROR]):
        raise CheckFailed(errors[0].message, fix=errors[0].fix, code=errors[0].code)
    if chosen is None:
        raise WrongInput(
            "no base could be inferred",
            fix="Add --framework or --from, or choose one with --base; `ctk bases` lists them.",
        )
    project = proposal.project
    beside = os.path.relpath(source.absolute().parent, catalogue.own) if source and project else ""
    architectures = implied_architectures(request)
    text = recipe_text(
        base=chosen,
        packages=proposal.packages,
        command=proposal.command,
        gpus=int(proposal.uses_gpu),
        indexes=proposal.indexes,
        files=[(f"{beside}/{path}", target) for path, target in project.files] if project else [],
        post=project.post if project else "",
        skip=proposal.wheels.skip if proposal.wheels else (),
        prefer=proposal.prefer,
        target=Target(tuple(wanted.name for wanted in request.gpus), _driver(request), architectures),
    )
    findings = (*_why(bases[chosen], request, proposal.wheels), *proposal.findings)
    catalogue.own.mkdir(exist_ok=True)
    write_atomically(path, text, keep_mode=True)
    if json:
        document = {"path": str(path), "base": chosen, "packages": list(proposal.packages)}
        document["prefer"] = list(proposal.prefer)
        print_json("ctk.new/1", document, findings)
        return
    print_findings(findings)
    say(f"Written to {path}: base {chosen}, packages {', '.join(proposal.packages) or '(none)'}.")
    suggest(f"ctk {'build' if not architectures or host_architecture() in architectures else 'lock'} {name}")


def _driver(request: BaseRequest) -> str | None:
    """The driver for `[target]`; None if it is the oldest of a cluster and does not know all its GPUs."""
    from toolkit.gpu.fit import impossible_driver

    return None if any(impossible_driver(gpu.capability, request.driver) for gpu in request.gpus) else request.driver


def _why(base: Base, request: BaseRequest, wheels: WheelBase | None) -> tuple[Finding, ...]:
    """Why this base: what it serves, and the command that says what excluded the others. `ctk bases` has no wheels."""
    from toolkit.gpu.choosing import BaseRequest, exclusions, served_range

    if wheels is not None:
        text = f"{wheels.name} was chosen: GPUs {served_range(wheels)}, driver {wheels.driver} or newer."
        return (Finding("base-chosen", Severity.INFO, text),)
    against = next(exclusions(base, request), None)
    if against is not None and not against.certain:
        text = f"{base.name} was chosen, but it is not known whether it serves this machine: {against.reason}"
        return (Finding("base-fit-unknown", Severity.WARNING, text, f"`{request_line(request)}` shows the others."),)
    if against is not None:
        text = f"{base.name} was requested, and does not serve this machine: {against.reason}"
        return (
            Finding("base-does-not-fit", Severity.WARNING, text, f"`{request_line(request)}` lists those that do."),
        )
    if base.framework is None or request == BaseRequest():
        return ()
    serves = f", GPUs {served_range(base)}" if served_range(base) else ""
    needs = f", driver {base.driver} or newer" if base.driver else ""
    text = f"{base.name} was chosen: {base.framework} {base.framework_version or ''}{serves}{needs}."
    return (Finding("base-chosen", Severity.INFO, text, f"`{request_line(request)}` shows the others."),)


def _copy(catalogue: Catalogue, like: str, name: str, *, force: bool, json: bool) -> None:
    from toolkit.pins.authoring.copying import copy_recipe

    written = copy_recipe(catalogue, like, name, force=force)
    recipe = catalogue.recipe(name)
    if json:
        document = {"path": str(recipe.path), "base": recipe.base.name, "packages": list(recipe.packages)}
        document["prefer"] = list(recipe.prefer)
        print_json("ctk.new/1", document)
        return
    say(f"{like} was copied to {', '.join(map(str, written))}.")
    suggest(f"ctk build {name}")


def _own_base(text: str, bases: dict[str, Base]) -> Base:
    """A base that `ctk bases` does not list, with the framework that its image has, if that can be read."""
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.pins.bases.facts import read_image
    from toolkit.recipes.model import Bootstrap
    from toolkit.recipes.references import resolve_base

    base = resolve_base(text, bases)
    target = read_image(base.path) if base.bootstrap is Bootstrap.LOCALIMAGE else None
    there = target.installed.values() if target is not None else ()
    found = next((package for package in there if knowledge().framework_of(package.name) is not None), None)
    return replace(base, framework=found.name, framework_version=found.version) if found is not None else base


def _refuse_unserved(proposal: Proposal, bases: list[Base], request: BaseRequest) -> None:
    """Raise CheckFailed if there are bases with the framework of a recipe, and none that serves the machine."""
    from toolkit.gpu.choosing import choose
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.pins.authoring.proposal import gpu_framework
    from toolkit.pins.authoring.wheels import WheelBase

    added = any(finding.code == "framework-added" for finding in proposal.findings)
    name = gpu_framework(proposal.packages, knowledge()) if added else None
    if name is None or not (request.gpus or request.driver or request.architectures):
        return
    framework = knowledge().framework_of(name)
    asked = replace(request, framework=replace(framework, bases=()) if framework else None)
    choice = choose(bases, asked)
    if not choice.fitting and any(found.rule != "framework" for found in choice.excluded.values()):
        raise nothing_fits(choice, asked, (base for base in bases if isinstance(base, WheelBase)))


def _propose(
    source: Path | None,
    bases: dict[str, Base],
    base: str | None,
    extras: list[str],
    wanted: str | None,
    *,
    keep_versions: bool,
) -> Proposal:
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.pins.authoring.proposal import Proposal, propose_base
    from toolkit.pins.authoring.reading import Bases, propose
    from toolkit.pins.index.uv import open_uv
    from toolkit.support.site import load_site

    if source is None:
        return propose_base(bases[base], knowledge(), wanted) if base else Proposal(None, (), ())
    resolver = lambda: open_uv(open_work_area(load_site()).path)  # noqa: E731 - called only where an index is asked
    proposal = propose(source, Bases(bases, base), resolver, extras, keep_versions=keep_versions)
    if base is None or not _is_unknown(bases[base]):
        return proposal
    # Nobody knows yet whether the base has the framework: the lock will not change it if it does.
    findings = tuple(finding for finding in proposal.findings if finding.code != "framework-added")
    return replace(proposal, findings=findings)


def _is_unknown(base: Base) -> bool:
    from toolkit.recipes.model import Bootstrap

    return base.framework is None and base.bootstrap in (Bootstrap.DOCKER, Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI)
