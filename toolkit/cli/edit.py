"""`ctk add`, `ctk remove`: the packages of a recipe changed without an editor, and its lock with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_recipe
from toolkit.cli.documents.recipes import recipe_edit
from toolkit.cli.locks import BaseReader, KeepVersions, say_lock_change
from toolkit.cli.output import live_steps, print_findings, print_json, say, suggest
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.files import require_writable
from toolkit.support.processes import visible_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.pins.authoring.edit import Edit
    from toolkit.pins.authoring.proposal import Proposal
    from toolkit.pins.store import Found
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Recipe
    from toolkit.support.findings import Finding

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
_Recipe = Annotated[
    str, typer.Argument(metavar="RECIPE", help="Name of a recipe (`ctk list`).", autocompletion=complete_recipe)
]
_Apt = Annotated[bool, typer.Option("--apt", help="Treat the names as Debian or Ubuntu packages.")]
_NoLock = Annotated[bool, typer.Option("--no-lock", help="Change only the recipe; the next build updates the lock.")]


def add(
    name: _Recipe,
    packages: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PACKAGE]...", help="Requirements as for pip (timm, 'numpy<2'), or import names."),
    ] = None,
    requirements: Annotated[
        list[Path] | None,
        typer.Option(
            "--requirements", "-r", metavar="FILE", help="Add all packages of a requirements.txt; repeatable."
        ),
    ] = None,
    keep_versions: KeepVersions = False,
    exact_names: Annotated[
        bool,
        typer.Option("--exact-names", help="Take PACKAGE as typed: correct no import name, refuse no misspelling."),
    ] = False,
    apt: _Apt = False,
    no_lock: _NoLock = False,
    json: _Json = False,
) -> None:
    """Add packages to a recipe and update its lock.

    Comments in the recipe are kept. Editing a shipped recipe first copies it to ./defs. A package that the recipe
    already lists is replaced. Import names are mapped to package names: cv2 to opencv-python-headless, sklearn to
    scikit-learn. On PyPI, some names, such as pytorch, belong to unrelated projects: ctk substitutes the intended
    package (torch), or rejects the name and says where to find it. A probable misspelling (sklern) is refused, because
    PyPI has unrelated packages under such names. If no versions fit the base, nothing is written. The versions of a
    `pip freeze` (-r) are taken wherever base and recipe allow, and the others are shown with the reason.

        ctk add keras-bert pandas 'seaborn>=0.12'
        ctk add keras-bert -r requirements.txt
        ctk add --apt keras-bert graphviz
    """
    from toolkit.pins.authoring.edit import APT, added, check_packages, preferring
    from toolkit.recipes.catalogue import Catalogue

    if not packages and not requirements:
        raise WrongInput("no packages to add", fix=f"ctk add {name} PACKAGE..., or -r requirements.txt")
    if keep_versions and not requirements:
        raise WrongInput("--keep-versions is for the versions of a list: name it with -r")
    if apt and requirements:
        raise WrongInput("a requirements.txt lists Python packages: leave out --apt or -r")
    catalogue = Catalogue.here()
    path = catalogue.path_of(name)
    if apt:
        _apply(catalogue, name, added(path, packages or (), APT), "added", lock=False, json=json, key=APT)
        return
    recipe = catalogue.recipe(name)
    typed = packages or ()
    if not exact_names:
        _refuse_misspelt(typed, recipe)
    lines, findings = (check_packages(typed), []) if exact_names else _translated(recipe.packages, typed)
    findings += _other_frameworks(catalogue, recipe, lines)
    prefer: list[str] = []
    for file in requirements or ():
        listed, found = _read_list(catalogue, catalogue.recipe(name), file, keep_versions=keep_versions)
        lines, prefer = [*lines, *_kept(recipe.packages, listed)], [*prefer, *listed.prefer]
        findings += found
    edit, gpu = _with_gpu(recipe, preferring(added(path, lines), prefer))
    findings += gpu
    _apply(catalogue, name, edit, "added", lock=not no_lock, json=json, wanted=bool(lines), findings=findings)


def remove(
    name: _Recipe,
    packages: Annotated[list[str], typer.Argument(metavar="PACKAGE...", help="Package names or import names.")],
    apt: _Apt = False,
    no_lock: _NoLock = False,
    json: _Json = False,
) -> None:
    """Remove packages from a recipe and update its lock.

    Comments in the recipe are kept. Editing a shipped recipe first copies it to ./defs.

        ctk remove keras-bert pydot
    """
    from toolkit.pins.authoring.edit import APT, PACKAGES, check_packages, removed
    from toolkit.recipes.catalogue import Catalogue

    catalogue = Catalogue.here()
    path = catalogue.path_of(name)
    if apt:
        _apply(catalogue, name, removed(path, packages, APT), "removed", lock=False, json=json, key=APT)
        return
    check_packages(packages, PACKAGES)
    wanted, findings = _as_in(catalogue.recipe(name).packages, packages)
    _apply(catalogue, name, removed(path, wanted), "removed", lock=not no_lock, json=json, findings=findings)


def _refuse_misspelt(packages: Sequence[str], recipe: Recipe) -> None:
    """Raise WrongInput for a name that is probably a misspelling; the recipe's own names are none."""
    from toolkit.inventory.knowledge.names import MISSPELT, misspelling, names
    from toolkit.pins.authoring.edit import check_packages

    own = {_canonical(line) for line in recipe.packages}
    for given in check_packages(packages):
        correct = names().misspelt(given)
        if correct is not None and _canonical(given) not in own:
            right = visible_command(["ctk", "add", recipe.name, correct])
            as_typed = visible_command(["ctk", "add", "--exact-names", recipe.name, given])
            raise WrongInput(
                misspelling(given, correct), fix=f"{right}\nIf the name is right: {as_typed}", code=MISSPELT
            )


def _translated(there: Iterable[str], packages: Iterable[str]) -> tuple[list[str], list[Finding]]:
    """The packages under the names that pip takes, with a finding for each name that was an import's.

    Raises WrongInput for an import that no package of PyPI gives.
    """
    from packaging.requirements import Requirement

    from toolkit.inventory.knowledge.names import names
    from toolkit.pins.authoring.edit import check_packages

    own = [Requirement(line).name for line in there]
    lines, findings = [], []
    for given in check_packages(packages):
        line = names().by_import(given)
        stranger = names().stranger(given)
        if line == "" or (stranger is not None and not (stranger.works or stranger.means)):
            also = "if you mean PyPI's package, add it to `packages` in the recipe."
            raise WrongInput(
                stranger.message
                if stranger
                else f"{given} is a module that no PyPI package provides; the PyPI package of that name is unrelated",
                fix=stranger.way if stranger and stranger.way else f"Install it in `post`; {also}",
            )
        if line is None and stranger is not None:
            (line,), found_else = names().as_meant([given])
            findings += found_else
            lines.append(line)
            continue
        if line is not None:
            name = Requirement(given).name
            if given == name and (found := names().given_by(name, own)) is not None:
                line = next(existing for existing in there if _canonical(existing) == found)
            findings.append(_is_import(name, Requirement(line).name))
        lines.append(line or given)
    return lines, findings


def _other_frameworks(catalogue: Catalogue, recipe: Recipe, lines: Iterable[str]) -> tuple[Finding, ...]:
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.inventory.knowledge.names import names
    from toolkit.pins.authoring.proposal import other_frameworks

    return other_frameworks(lines, recipe.base, names(), knowledge(), catalogue.bases())


def _with_gpu(recipe: Recipe, edit: Edit) -> tuple[Edit, tuple[Finding, ...]]:
    """The edit with a GPU for jobs where it adds the first GPU framework, as `ctk new` would have asked for one.

    `gpus = 0` is what `ctk new` writes for a recipe without such a framework.
    """
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.pins.authoring.edit import asking_for_gpu
    from toolkit.pins.authoring.proposal import gpu_framework
    from toolkit.support.findings import Finding, Severity

    base, known = recipe.base, knowledge()
    is_plain = base.framework is None and base.bootstrap == Bootstrap.DEBOOTSTRAP
    if not is_plain or recipe.job.resources.get("gpus") not in (0, "0") or gpu_framework(recipe.packages, known):
        return edit, ()
    framework = gpu_framework(edit.entries, known)
    if framework is None:
        return edit, ()
    message = f"{framework} uses a GPU: [job] gpus was changed from 0 to 1"
    fix = f"For jobs on the CPU: ctk sbatch --job-name {recipe.name} --gpus 0, or gpus = 0 in the recipe."
    return asking_for_gpu(edit), (Finding("gpu-asked-for", Severity.INFO, message, fix),)


def _as_in(there: Sequence[str], packages: Iterable[str]) -> tuple[list[str], list[Finding]]:
    """The names that the recipe has for `packages`; one that it does not have stays as it is."""
    from packaging.requirements import Requirement

    from toolkit.inventory.knowledge.names import names

    found, findings = [], []
    for given in packages:
        name = Requirement(given).name
        known = names().given_by(name, (Requirement(line).name for line in there))
        if known is not None and known != _canonical(given):
            findings.append(_is_import(name, known))
        found.append(known or given)
    return found, findings


def _canonical(line: str) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(line).name)


def _is_import(name: str, distribution: str) -> Finding:
    from toolkit.support.findings import Finding, Severity

    return Finding("import-name", Severity.INFO, f"{name} is imported from the package {distribution}")


def _read_list(
    catalogue: Catalogue, recipe: Recipe, file: Path, *, keep_versions: bool
) -> tuple[Proposal, list[Finding]]:
    """The packages of a requirements.txt that the base of the recipe does not bring itself, and the findings."""
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.inventory.knowledge.names import names
    from toolkit.pins.authoring.freeze import preferring, reduce_dump
    from toolkit.pins.authoring.package_lists import read_requirements, refuse_empty
    from toolkit.pins.authoring.proposal import propose_from_list
    from toolkit.pins.index.uv import open_uv
    from toolkit.support.site import load_site

    listed = read_requirements(file)
    refuse_empty(listed, file)
    wanted, findings = listed.requirements, listed.findings()
    reduced = None
    if listed.frozen:
        reduced = reduce_dump(open_uv(open_work_area(load_site()).path), wanted, recipe.indexes)
        wanted = (*reduced.direct, *(reduced.others if keep_versions else ()))
        findings = (*findings, *reduced.findings)
    lines, renamed = _translated(recipe.packages, wanted)
    bases = {**catalogue.bases(), recipe.base.name: recipe.base}
    proposal = propose_from_list(lines, names(), knowledge(), bases, findings, recipe.base.name, dump=listed.frozen)
    if reduced is not None:
        proposal = preferring(proposal, reduced.listed, keep_versions=keep_versions)
    return proposal, [*proposal.findings, *renamed]


def _kept(there: Sequence[str], listed: Proposal) -> list[str]:
    """The lines of a list; those that the recipe has already stay as they are if they allow the version of the list."""
    from packaging.requirements import Requirement

    from toolkit.inventory.knowledge.frameworks import satisfies
    from toolkit.recipes.requirements import exact_version

    versions = {_canonical(line): exact_version(line) or "" for line in listed.prefer}
    own = {_canonical(line): line for line in there}

    def kept(line: str) -> str:
        old, version = own.get(name := _canonical(line)), versions.get(name)
        bare = not Requirement(line).specifier and not Requirement(line).url
        return old if bare and old and version and satisfies(version, str(Requirement(old).specifier)) else line

    return [kept(line) for line in listed.packages]


def _apply(
    catalogue: Catalogue,
    name: str,
    edit: Edit,
    what: str,
    *,
    lock: bool,
    json: bool,
    wanted: bool = True,
    key: str = "packages",
    findings: Sequence[Finding] = (),
) -> None:
    """Resolve the new lock, then write recipe and lock: where no versions fit, neither is written."""
    from toolkit.pins.authoring.edit import write_edit
    from toolkit.pins.lock.lockfile import write_lock
    from toolkit.pins.store import lost_sections

    if edit.changed or edit.preferred:
        require_writable(catalogue.own / f"{name}.toml")
    found, others = _resolve(catalogue, name, edit) if lock else ([], ())
    if edit.changed or edit.preferred:
        write_edit(edit, catalogue.own_copy(name))
    for locked in found:
        others += lost_sections(write_lock(locked.lock, locked.path), name, locked.path)
    findings = (*findings, *others)
    if json:
        added = edit.changed if what == "added" else ()
        removed = edit.changed if what == "removed" else ()
        document = recipe_edit(name, key, found, added=added, removed=removed, preferred=edit.preferred)
        print_json("ctk.recipe-edit/1", document, findings)
        return
    print_findings(findings)
    nothing = f"Nothing to do: {name} already has {'them' if what == 'added' else 'none of them'}."
    if what == "added" and not wanted:
        nothing = "Nothing to do: the base provides the listed packages, or they cannot be used in an image."
    if edit.changed or not edit.preferred:
        say(f"{what.capitalize()}: {', '.join(edit.changed)}." if edit.changed else nothing)
    if edit.preferred:
        say(f"Preferred from now on ([lock] prefer): {', '.join(edit.preferred)}.")
    if edit.unskipped:
        say(f"Removed from [imports] skip: {', '.join(edit.unskipped)}.")
    for locked in found:
        say_lock_change(locked, name, written=True)
    suggest(f"ctk build {name}")


def _resolve(catalogue: Catalogue, name: str, edit: Edit) -> tuple[list[Found], tuple[Finding, ...]]:
    """The locks of the recipe as they would be, this host's first, and warnings about other sections of their file.

    No lock if it is the build that has to make it.
    """
    from toolkit.pins.store import Locks
    from toolkit.recipes.architectures import architecture_of, per_architecture
    from toolkit.support.site import load_site

    bases = catalogue.bases()
    there = catalogue.recipe(name, bases=bases)
    skip = tuple(skipped for skipped in there.import_skip if skipped not in edit.unskipped)
    prefer = there.prefer if edit.prefer is None else edit.prefer
    recipe = replace(there, packages=edit.entries, import_skip=skip, prefer=prefer)
    site = load_site()
    area = open_work_area(site)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True))
    if not (recipe.needs_guard or locks.path(recipe).is_file()):
        return [], ()
    first = architecture_of(recipe)
    try:
        with live_steps(f"Choosing the versions for {name}") as on_step:
            reader = BaseReader(locks, area, site, on_step)
            recipes = sorted(per_architecture(recipe), key=lambda asked: architecture_of(asked) != first)
            found = [locks.for_build(asked, reader.read(asked), write=False) for asked in recipes]
        return found, locks.judge_others(recipe, [locked.lock.architecture for locked in found])
    except CtkError as error:
        if error.code == "base-not-here":
            say(f"Not locked: {error.message}. `ctk build {name}` pulls it and writes the lock.", stderr=True)
            return [], ()
        unchanged = "The recipe was not changed. --no-lock changes it without a lock."
        error.fix = f"{error.fix}\n{unchanged}" if error.fix else unchanged
        raise
