"""`ctk lock`: exact versions for a recipe, for each architecture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.clusters import ClusterOption, for_machine, named_target
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.documents import recipes as documents
from toolkit.cli.locks import AllowBrokenBase, BaseReader, say_list_rows
from toolkit.cli.output import live_steps, print_findings, print_json, print_table, say, suggest
from toolkit.pins.lock.model import PREFERRED, Inventoried
from toolkit.pins.lock.upgrade import FULL_UPGRADE, NO_UPGRADE, Upgrade
from toolkit.support.errors import CheckFailed, CtkError, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import command_line
from toolkit.support.text import count, did_you_mean

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.store import Locks
    from toolkit.recipes.model import Recipe, Target

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
    arch: Annotated[
        list[str] | None,
        typer.Option(
            "--arch",
            metavar="ARCH",
            help="Lock for this architecture, x86_64 or aarch64 (GH200, GB10); repeatable, or a list with commas. "
            "[default: the recipe's, or this host's]",
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
    cluster: ClusterOption = None,
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
        ctk lock cupy --arch aarch64                for Arm machines, on any host
        ctk lock mine --cluster abci3               refuse what the GPUs of that cluster cannot run
        ctk lock mine --export pylock.mine.toml     for `uv pip install -r`, without a container

    An export holds the files that the lock adds, with their URLs and hashes, without credentials. Packages of the base
    are listed in [tool.ctk] only: install the framework first.
    """
    from toolkit.gpu.targets import check_target
    from toolkit.pins.store import Locks
    from toolkit.recipes.architectures import (
        architecture_of,
        host_architecture,
        listed_architectures,
        per_architecture,
    )
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
    named = listed_architectures(arch or ())
    catalogue = Catalogue.here()
    site = load_site()
    area = open_work_area(site)
    area.create()
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True))
    owners = judge_owners(catalogue, name)
    print_findings(owners, stderr=True)
    other = resolve_base(base, locks.bases) if base is not None else None
    recipe = catalogue.recipe(name, base=other, bases=dict(locks.bases))
    print_findings(judge_record(recipe.base, allow_broken=allow_broken_base), stderr=True)
    check_target(recipe)
    target = named_target(cluster)
    check_target(for_machine(recipe, target))
    recipes = per_architecture(recipe, named)
    if export is not None and len(recipes) > 1:
        example = command_line(["ctk", "lock", name, "--export", str(export), "--arch", architecture_of(recipes[0])])
        raise WrongInput("an export is for one architecture", fix=f"Name one with --arch: {example}")
    path = locks.path(recipe)
    with live_steps(f"Choosing the versions for {name}") as on_step:
        reader = BaseReader(locks, area, site, on_step)
        request = _Request(locks, path, reader, exclude_newer, check, upgrade, tuple(packages or ()), target)
        outcomes = _checked(recipes, request) if check else _made(recipes, request)
    others = (*_write(outcomes, path), *locks.judge_others(recipe, [made.lock.architecture for made in outcomes]))
    if export is not None:
        _export(outcomes[0].lock, export, locks, force=force)
    _show(outcomes, path, owners, others, json=json)
    if not json and any(made.is_new and made.lock.architecture == host_architecture() for made in outcomes):
        suggest(f"ctk build {name}")


@dataclass(frozen=True, slots=True)
class _Request:
    """What `ctk lock` was asked for, for each architecture."""

    locks: Locks
    path: Path
    reader: BaseReader
    exclude_newer: str | None
    check: bool
    upgrade: bool
    packages: tuple[str, ...]
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The lock for one architecture, and the one that was there."""

    lock: Lock
    earlier: Lock | None
    findings: tuple[Finding, ...]

    @property
    def is_new(self) -> bool:
        return self.lock is not self.earlier


def _made(recipes: Sequence[Recipe], request: _Request) -> list[_Outcome]:
    return [_for_one(recipe, request, several=len(recipes) > 1) for recipe in recipes]


def _checked(recipes: Sequence[Recipe], request: _Request) -> list[_Outcome]:
    """The locks of all architectures. Raises one CheckFailed for all that are not current."""
    outcomes, refused = [], []
    for recipe in recipes:
        try:
            outcomes.append(_for_one(recipe, request, several=len(recipes) > 1))
        except CheckFailed as error:
            refused.append(error)
    if refused:
        fixes = dict.fromkeys(error.fix for error in refused if error.fix)
        message = "; ".join(error.message for error in refused)
        raise CheckFailed(message, fix="\n".join(fixes) or None, code=refused[0].code)
    return outcomes


def _for_one(recipe: Recipe, request: _Request, *, several: bool) -> _Outcome:
    """The lock of a recipe for one architecture. An error says for which, if there are several."""
    from toolkit.recipes.architectures import architecture_of

    architecture = architecture_of(recipe)
    try:
        outcome = _lock_one(recipe, architecture, request)
    except CtkError as error:
        if several and architecture not in error.message:
            error.message = f"{architecture}: {error.message}"
        raise
    findings = (*outcome.findings, *_notes(outcome.lock))
    if several:
        findings = tuple(replace(finding, message=f"{architecture}: {finding.message}") for finding in findings)
    return replace(outcome, findings=findings)


def _lock_one(recipe: Recipe, architecture: str, request: _Request) -> _Outcome:
    from toolkit.gpu.targets import judge_packages, judge_target
    from toolkit.pins.locking import is_current, refusal
    from toolkit.pins.store import moved_tag
    from toolkit.recipes.architectures import lock_command

    locks, path = request.locks, request.path
    judged = for_machine(recipe, request.target)
    fit = judge_target(judged, locks.bases.values())
    earlier = _earlier(path, architecture, must_be_good=request.check)
    day = earlier.exclude_newer if earlier and request.exclude_newer is None else request.exclude_newer
    day = None if day == _NEVER else day
    current = earlier is not None and is_current(earlier, recipe, locks.local_digest(recipe))
    current = current and earlier is not None and earlier.exclude_newer == day
    if request.check and not current:
        raise refusal(recipe, path, earlier)
    if earlier is not None and current and not request.upgrade:
        judge_packages(judged, earlier.versions)
        findings = [Finding("lock-current", Severity.OK, f"{path} is up to date"), *fit]
        if request.check and (moved := moved_tag(recipe, earlier)):
            again = f"{lock_command(recipe.name, architecture)} --upgrade"
            findings.append(Finding("tag-moved", Severity.WARNING, moved, again))
        return _Outcome(earlier, earlier, tuple(findings))
    chosen = _upgrade(earlier, request.packages) if request.upgrade else NO_UPGRADE
    image = request.reader.read(recipe, pull=True, fresh=earlier is None or chosen.everything)
    made = locks.make(recipe, image, earlier=earlier, upgrade=chosen, exclude_newer=day)
    judge_packages(judged, made.versions)
    return _Outcome(made, earlier, fit)


def _write(outcomes: Sequence[_Outcome], path: Path) -> tuple[Finding, ...]:
    """Write what was made, once all of it is, and print the changes. Return warnings about sections that were lost."""
    from toolkit.pins.lock.changes import compare_locks
    from toolkit.pins.lock.lockfile import write_lock
    from toolkit.pins.store import lost_sections

    lost: list[str] = []
    for outcome in outcomes:
        if outcome.is_new:
            lost += write_lock(outcome.lock, path)
        if outcome.is_new and outcome.earlier is not None:
            for line in compare_locks(outcome.earlier, outcome.lock).lines:
                say(f"  {line}", stderr=True)
    again = {outcome.lock.architecture for outcome in outcomes}
    return lost_sections(
        [architecture for architecture in lost if architecture not in again], outcomes[0].lock.recipe, path
    )


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


def _export(lock: Lock, export: Path, locks: Locks, *, force: bool) -> None:
    from toolkit.pins.index.uv import open_uv
    from toolkit.pins.pylock import export_lock

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


def _earlier(path: Path, architecture: str, *, must_be_good: bool) -> Lock | None:
    """The lock that is there. One that was edited by hand is regenerated, unless it is only asked about."""
    from toolkit.pins.lock.lockfile import load_lock

    try:
        return load_lock(path, architecture)
    except WrongInput as error:
        if error.code not in ("edited-lock", "wrong-lock"):
            raise
        if must_be_good:
            raise CheckFailed(error.message, fix=error.fix, code=error.code) from error
        say(f"{error.message}: regenerated", stderr=True)
        return None


def _notes(lock: Lock) -> list[Finding]:
    notes = [Finding("lock-note", Severity.WARNING, note) for note in lock.notes]
    if lock.base.inventory is Inventoried.RECORDED:
        text = (
            "the image of the base was not read: resolved from its entry in bases.toml; `ctk build` "
            "checks the lock against the image"
        )
        notes.append(Finding("recorded-inventory", Severity.INFO, text))
    return notes


def _show(
    outcomes: Sequence[_Outcome], path: Path, owners: Sequence[Finding], others: Sequence[Finding], *, json: bool
) -> None:
    findings = [*(finding for outcome in outcomes for finding in outcome.findings), *others]
    if json:
        print_json("ctk.lock/1", documents.locks([outcome.lock for outcome in outcomes], path), [*owners, *findings])
        return
    for outcome in outcomes:
        if len(outcomes) > 1:
            say(f"{outcome.lock.architecture}:", style="bold")
        _show_one(outcome.lock)
    print_findings(findings)
    if any(outcome.is_new for outcome in outcomes):
        say(f"Written to {path}.")


def _show_one(lock: Lock) -> None:
    from toolkit.pins.lock.changes import list_rows

    print_table(
        ("package", "version", "because of"),
        [(package.name, package.version, ", ".join(package.required_by)) for package in lock.packages],
    )
    say_list_rows(tuple(list_rows(lock)))
    listed = [held for held in lock.held if held.because == PREFERRED]
    for held in lock.held:
        if held not in listed:
            say(f"{held.name} {held.version}, not {held.newest}: {held.because}.")
    if listed:
        say(f"{count(len(listed), 'package')} in the version of the list, though newer ones exist.")
    pins = ", ".join(f"{pin.name} {pin.version}" for pin in lock.protected.pins)
    say(f"Protected: {pins or 'nothing, the base has no GPU framework'}.")
    if lock.own.pins:
        added = ", ".join(f"{pin.name} {pin.version}" for pin in lock.own.pins)
        say(f"Protected like a base's own from now on: {added}.")
    if lock.exclude_newer:
        say(f"Releases after {lock.exclude_newer} were ignored; --exclude-newer {_NEVER} ends that.")
