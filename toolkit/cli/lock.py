"""`ctk lock` and `ctk why`: exact versions for a recipe, and the reason for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.documents import recipes as documents
from toolkit.cli.locks import AllowBrokenBase, BaseReader
from toolkit.cli.output import live_steps, print_findings, print_json, print_table, say, suggest
from toolkit.pins.lock.model import Inventoried
from toolkit.pins.lock.upgrade import FULL_UPGRADE, NO_UPGRADE, Upgrade
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import command_line
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.store import Locks
    from toolkit.recipes.catalogue import Catalogue

_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2}(\.\d+)?Z)?")
_NEVER = "never"
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
_Name = Annotated[
    str, typer.Argument(metavar="RECIPE", help="Name of a recipe (`ctk list`).", autocompletion=complete_recipe)
]


def lock(
    name: _Name,
    packages: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PACKAGE]...", help="With --upgrade: only these packages. [default: all]"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether the lock is up to date (exit status 1: it is not).")
    ] = False,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Take newer versions, and resolve the base's digest again.")
    ] = False,
    exclude_newer: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="Ignore releases after DATE (2021-03-07), now and later; `never` removes the limit.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Lock for this base instead; files in ./defs do not change.",
            autocompletion=complete_base,
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the lock as pylock.toml or pylock.NAME.toml (PEP 751), for uv and pip.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --export: replace any existing FILE.")] = False,
    allow_broken_base: AllowBrokenBase = False,
    json: _Json = False,
) -> None:
    """Choose exact versions that do not change the GPU framework.

    The framework, its GPU libraries and the packages that depend on its exact version (keras with TensorFlow,
    torchvision with PyTorch) stay as they are in the base. All other packages are resolved around them and written,
    with hashes, to ./defs/NAME.lock.toml. `ctk build` installs exactly these. Commit the file: anyone with the lock
    can rebuild the image.

        ctk lock mine                               create or check the lock
        ctk lock mine --upgrade transformers        upgrade only this package
        ctk lock mine --exclude-newer 2021-03-07    only releases up to that day
        ctk lock mine --check                       exit status 1 if outdated
        ctk lock mine --export pylock.mine.toml     for `uv pip install -r`, without a container

    An export holds the files that the lock adds, with their URLs and hashes, without credentials. Packages of the base
    are listed in [tool.ctk] only: install the framework first.
    """
    from toolkit.gpu.targets import judge_packages, judge_target
    from toolkit.pins.lock.changes import compare_locks
    from toolkit.pins.lock.lockfile import write_lock
    from toolkit.pins.locking import is_current, stale
    from toolkit.pins.store import Locks, moved_tag
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.evidence import judge_record
    from toolkit.recipes.owners import judge_owners
    from toolkit.recipes.references import resolve_base
    from toolkit.support.site import load_site

    if packages and not upgrade:
        again = command_line(["ctk", "lock", name, "--upgrade", *packages])
        raise WrongInput(f"package names need --upgrade: {', '.join(packages)}", fix=again)
    _check_day(exclude_newer)
    _check_export(export, name, check=check, force=force)
    catalogue = Catalogue.here()
    site = load_site()
    area = open_work_area(site)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True))
    print_findings(judge_owners(catalogue, name), stderr=True)
    other = resolve_base(base, locks.bases) if base is not None else None
    recipe = catalogue.recipe(name, base=other, bases=dict(locks.bases))
    print_findings(judge_record(recipe.base, allow_broken=allow_broken_base), stderr=True)
    fit = list(judge_target(recipe, locks.bases.values()))
    path = locks.path(recipe)
    earlier = _earlier(path, must_be_good=check)
    day = earlier.exclude_newer if earlier and exclude_newer is None else exclude_newer
    day = None if day == _NEVER else day
    digest = locks.local_digest(recipe)
    current = earlier is not None and is_current(earlier, recipe, digest) and earlier.exclude_newer == day
    if check:
        if earlier is None or not current:
            raise stale(name)
        judge_packages(recipe, earlier.versions)
        findings = [Finding("lock-current", Severity.OK, f"{path} is up to date"), *fit]
        if moved := moved_tag(recipe, earlier):
            findings.append(Finding("tag-moved", Severity.WARNING, moved, f"ctk lock {name} --upgrade"))
        _show(earlier, path, json, findings)
        return
    if earlier is not None and current and not upgrade:
        judge_packages(recipe, earlier.versions)
        _export(earlier, export, locks, force=force)
        _show(earlier, path, json, [Finding("lock-current", Severity.OK, f"{path} is up to date"), *fit])
        return
    chosen = _upgrade(earlier, packages or ()) if upgrade else NO_UPGRADE
    with live_steps(f"Choosing the versions for {name}") as on_step:
        reader = BaseReader(locks, area, site, on_step)
        image = reader.read(recipe, pull=True, fresh=earlier is None or chosen.everything)
        made = locks.make(recipe, image, earlier=earlier, upgrade=chosen, exclude_newer=day)
        judge_packages(recipe, made.versions)
        write_lock(made, path)
    if earlier is not None:
        for line in compare_locks(earlier, made).lines:
            say(f"  {line}", stderr=True)
    _export(made, export, locks, force=force)
    _show(made, path, json, fit)
    if not json:
        suggest(f"ctk build {name}")


def _check_export(export: Path | None, name: str, *, check: bool, force: bool) -> None:
    """Refuse a file that could not be written before the versions are chosen, which may take minutes."""
    if export is None:
        if force:
            raise WrongInput("--force requires --export", fix=f"ctk lock {name} --upgrade chooses the versions again.")
        return
    if check:
        raise WrongInput("--check writes nothing: leave out --export")
    from toolkit.pins.pylock import check_export

    check_export(export, name, force=force)


def _export(lock: Lock, export: Path | None, locks: Locks, *, force: bool) -> None:
    from toolkit.pins.index.uv import open_uv
    from toolkit.pins.pylock import export_lock

    if export is not None:
        export_lock(lock, export, open_uv(locks.area), force=force)
        say(f"Exported to {export}.", stderr=True)


def _check_day(text: str | None) -> None:
    if text in (None, _NEVER):
        return
    match = _DATE.fullmatch(text or "")
    try:
        date.fromisoformat(match[1] if match else "")
    except ValueError:
        raise WrongInput(f"--exclude-newer should be a date such as 2021-03-07, or {_NEVER}, not {text!r}") from None


def _upgrade(earlier: Lock | None, packages: Sequence[str]) -> Upgrade:
    """The upgrade of `packages`, of everything without any. Raises WrongInput for one that the lock does not have."""
    from packaging.utils import canonicalize_name

    if not packages:
        return FULL_UPGRADE
    names = tuple(map(canonicalize_name, packages))
    known = [package.name for package in earlier.packages] if earlier else names
    for name in names:
        if name not in known:
            raise WrongInput(f"cannot upgrade {name}: the lock does not add it.{did_you_mean(name, known)}")
    return Upgrade(frozenset(names))


def _earlier(path: Path, *, must_be_good: bool) -> Lock | None:
    """The lock that is there. One that was edited by hand is regenerated, unless it is only asked about."""
    from toolkit.pins.lock.lockfile import load_lock

    if not path.is_file():
        return None
    try:
        return load_lock(path)
    except WrongInput as error:
        if must_be_good:
            raise CheckFailed(error.message, fix=error.fix, code=error.code) from error
        say(f"{error.message}: regenerated", stderr=True)
        return None


def _show(lock: Lock, path: Path, json: bool, findings: list[Finding]) -> None:
    notes = [Finding("lock-note", Severity.WARNING, note) for note in lock.notes]
    if lock.base.inventory is Inventoried.RECORDED:
        text = (
            "the base is not on this machine: resolved from its entry in bases.toml; `ctk build` "
            "updates the lock from the image"
        )
        notes.append(Finding("recorded-inventory", Severity.INFO, text))
    if json:
        print_json("ctk.lock/1", documents.lock(lock, path), [*findings, *notes])
        return
    print_table(
        ("package", "version", "because of"),
        [(package.name, package.version, ", ".join(package.required_by)) for package in lock.packages],
    )
    for held in lock.held:
        say(f"{held.name} {held.version}, not {held.newest}: {held.because}.")
    pins = ", ".join(f"{pin.name} {pin.version}" for pin in lock.protected.pins)
    say(f"Protected: {pins or 'nothing, the base has no GPU framework'}.")
    if lock.own.pins:
        added = ", ".join(f"{pin.name} {pin.version}" for pin in lock.own.pins)
        say(f"Protected like a base's own from now on: {added}.")
    if lock.exclude_newer:
        say(f"Releases after {lock.exclude_newer} were ignored; --exclude-newer {_NEVER} ends that.")
    print_findings([*notes, *findings])
    if not findings:
        say(f"Written to {path}.")


def why(
    package: Annotated[str, typer.Argument(metavar="PACKAGE", help="Package name or import name.")],
    name: Annotated[
        str | None, typer.Argument(metavar="[RECIPE]", help="Name of a recipe. [default: the only locked one]")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Read the lock that `ctk lock --base BASE` wrote.",
            autocompletion=complete_base,
        ),
    ] = None,
    json: _Json = False,
) -> None:
    """Explain why a package is in an image, and why at this version.

    Reads the recipe's lock, without the network. If another package is installed instead of PACKAGE, both are
    explained. Exit status 1: the lock does not contain the package.

        ctk why torchvision pytorch
    """
    from packaging.utils import canonicalize_name

    from toolkit.inventory.knowledge.names import names
    from toolkit.pins.lock.lockfile import load_lock
    from toolkit.pins.locking import is_current, stale
    from toolkit.pins.store import Locks
    from toolkit.pins.why import why as explain
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.support.site import load_site

    catalogue = Catalogue.here()
    locks = Locks.of(catalogue, open_work_area(load_site()).path)
    path = _lock_of(locks, name) if base is None else _lock_on(catalogue, locks, name, base)
    there = load_lock(path)
    has = [package.name for package in there.packages] + [line.partition("==")[0] for line in there.present]
    known = names().given_by(package, has) or names().by_import(package)
    if known is not None and known != canonicalize_name(package):
        say(f"{package} is imported from the package {known}.", stderr=True)
        package = known
    sentences = explain(there, package)
    if not sentences:
        recipe = there.recipe if base is not None else path.name.removesuffix(".lock.toml")
        if base is None and recipe in catalogue.paths():
            asked = catalogue.recipe(recipe, bases=dict(locks.bases))
            if not is_current(there, asked, locks.local_digest(asked)):
                raise stale(recipe)
        raise CheckFailed(
            f"{package} is not installed by {recipe}: neither the base nor the lock has it",
            fix=command_line(["ctk", "add", recipe, package]),
        )
    if json:
        print_json("ctk.why/1", {"package": package, "lock": str(path), "reasons": list(sentences)})
        return
    for sentence in sentences:
        say(sentence)


def _lock_of(locks: Locks, name: str | None) -> Path:
    if name is None:
        found = sorted(locks.directory.glob("*.lock.toml"))
        if len(found) == 1:
            return found[0]
        raise WrongInput(
            f"there {'are several locks' if found else 'is no lock'} in {locks.directory}",
            fix="Name the recipe: ctk why PACKAGE NAME" if found else "ctk lock NAME creates one.",
        )
    path = locks.directory / f"{name}.lock.toml"
    if not path.is_file():
        raise WrongInput(f"the recipe {name} has no lock here: {path}", fix=f"ctk lock {name}")
    return path


def _lock_on(catalogue: Catalogue, locks: Locks, name: str | None, base: str) -> Path:
    """The lock of a recipe on another base than its own, which is kept in the work area."""
    from toolkit.recipes.references import resolve_base

    recipe = name or _lock_of(locks, None).name.removesuffix(".lock.toml")
    path = locks.path(catalogue.recipe(recipe, base=resolve_base(base, locks.bases)))
    if not path.is_file():
        make = command_line(["ctk", "lock", recipe, "--base", base])
        raise WrongInput(f"the recipe {recipe} has no lock on the base {base}", fix=make)
    return path
