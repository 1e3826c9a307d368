"""Build the targets of one `ctk build`, each with its own lock, log and report."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.cli.area import open_work_area
from toolkit.cli.build_report import Outcome, failed, print_plan, report_built, report_unchanged, suggest_next
from toolkit.cli.cache import prune_after_build
from toolkit.cli.copies import require_copies
from toolkit.cli.locks import lock_policy, say_lock_change, say_others
from toolkit.cli.output import live_steps, print_findings, say
from toolkit.cli.progress import Display
from toolkit.cli.skip import remember_skipped, with_skipped
from toolkit.cli.stores import tell_once, tell_unused
from toolkit.cli.told import not_told
from toolkit.cli.used_image import damage_of
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.os_errors import from_os_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.request import BuildRequest
    from toolkit.runtime.engine import BuildOptions
    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options of `ctk build` ask for."""

    options: BuildOptions
    site: Site
    output: Path | None = None
    base: str | None = None
    force: bool = False
    allow_file: Sequence[Path] = ()
    allow_import_failure: Sequence[str] = ()
    allow_broken_base: bool = False
    dry_run: bool = False
    locked: bool = False
    offline: bool = False
    verbose: bool = False
    json: bool = False


def build_all(targets: Sequence[str], wanted: Wanted) -> list[Outcome]:
    """Build several targets, one after the other. One that fails does not stop the others; an interruption does.

    Nothing is built if one of them is no target, or two have one output. Raises WrongInput.
    """
    _check(targets, wanted)
    outcomes: list[Outcome] = []
    for number, target in enumerate(targets, start=1):
        say(f"{target} ({number} of {len(targets)}):", style="bold", stderr=True)
        started = time.monotonic()
        try:
            outcome = build_one(target, wanted, several=True)
        except BrokenPipeError:
            raise
        except CtkError as error:
            outcome = failed(target, error, time.monotonic() - started)
        except OSError as error:
            outcome = failed(target, from_os_error(error), time.monotonic() - started)
        if outcome is not None:
            outcomes.append(outcome)
    return outcomes


def build_one(target: str, wanted: Wanted, *, several: bool = False) -> Outcome | None:
    """Build one target and print its report; with `--json`, that is left to the caller. None for a dry run.

    `several`: there are others, so that no next step is suggested.
    """
    from toolkit.builds.asking import request_build
    from toolkit.builds.context import BuildContext
    from toolkit.builds.offline import require_fetched
    from toolkit.builds.resolve import resolve, unchanged_record
    from toolkit.builds.target import parse_target
    from toolkit.pins.store import Locks, Policy
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.evidence import judge_record
    from toolkit.recipes.outside import judge_base
    from toolkit.recipes.owners import judge_image, judge_owners
    from toolkit.runtime.engine import find_runtime
    from toolkit.support.mirror import debian_mirror

    catalogue, base, dry_run, json = Catalogue.here(), wanted.base, wanted.dry_run, wanted.json

    def asked() -> BuildRequest:
        parsed = parse_target(target, flat=wanted.options.layered is False)
        return request_build(parsed, catalogue, wanted.options, output=wanted.output, base=base, force=wanted.force)

    request, not_allowed = asked(), None
    outside: tuple[Finding, ...] = ()
    owners = judge_owners(catalogue, request.recipe.name) if request.recipe is not None else ()
    owners = (*owners, *(finding for image in _images(request) for finding in judge_image(image, "the build")))
    print_findings(owners, stderr=True)
    if request.recipe is not None:
        print_findings(judge_record(request.recipe.base, allow_broken=wanted.allow_broken_base), stderr=True)
        outside = judge_base(request.recipe) if base is None else ()
        try:
            require_copies(request.recipe, wanted.allow_file)
        except WrongInput as error:
            if not dry_run or error.code != "private-file":
                raise
            not_allowed = error
    if wanted.allow_import_failure:
        request = with_skipped(request, list(wanted.allow_import_failure))
        if request.recipe is not None and not dry_run and remember_skipped(catalogue, request.recipe):
            request = asked()  # a shipped recipe is in ./defs now
    site = wanted.site
    runtime = find_runtime(site)
    area = open_work_area(site)
    policy = lock_policy(locked=wanted.locked, base=base, otherwise=Policy.PREVIEW if dry_run else Policy.UPDATE)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True), policy)
    mirror = debian_mirror(site)
    context = BuildContext(
        runtime, area, locks, mirror, preview=dry_run, site=site, offline=wanted.offline, note=tell_once
    )
    told = (*owners, *tell_unused(context.store))
    if dry_run:
        print_findings(outside, stderr=True)
        with live_steps(f"Choosing the versions for {request.output.name}"):
            plan = resolve(request, context)
        _say_lock_change(plan, written=False)
        print_plan(plan, context, not_allowed, told, json=json)
        return None
    if request.link is not None:
        say(f"{request.link} is a symlink: the image is written to {request.output}.", stderr=True)
    if (record := unchanged_record(request, context)) is not None and (reason := damage_of(request.output)):
        message = f"{request.output} is damaged: {reason}. Building it again"
        damaged = Finding("corrupt-image", Severity.WARNING, message)
        print_findings([damaged], stderr=True)
        record, told = None, (*told, damaged)
    if record is not None:
        outcome = report_unchanged(request, record, told, json=json)
    else:
        require_fetched(request, context)
        from toolkit.builds.whole import build  # what an image that is up to date does not need

        def planned(plan: BuildPlan) -> None:
            _say_lock_change(plan, written=True)
            if plan.request.recipe is not None and plan.locked is not None:
                say_others(plan.locked, locks, plan.request.recipe)

        _show_work_area(area)
        area.create()
        if request.recipe is not None:
            print_findings(not_told(request.recipe.path, outside, area.path), stderr=True)
        started = time.monotonic()
        display = Display(f"Building {request.output.name}", verbose=wanted.verbose)
        with display.shown():
            plan, built = build(request, context, display.listener, planned)
        built = replace(built, seconds=time.monotonic() - started)
        outcome = report_built(plan, built, display.steps, told, json=json, verbose=wanted.verbose)
        prune_after_build(area, site)
    if not several and not json:
        suggest_next(request, outcome)
    return outcome


def _images(request: BuildRequest) -> Iterator[Path]:
    """The images of this machine that an image is made from."""
    from toolkit.builds.target import TargetKind

    base = request.recipe.base if request.recipe is not None else request.base
    if base is not None and base.is_local:
        yield base.path
    elif request.target.kind in (TargetKind.SANDBOX, TargetKind.IMAGE):
        yield Path(request.target.text)


def _check(targets: Sequence[str], wanted: Wanted) -> None:
    """Raise WrongInput for what is no target, and for two targets that would replace each other's image."""
    from toolkit.builds.asking import request_build
    from toolkit.builds.target import parse_target
    from toolkit.recipes.catalogue import Catalogue

    catalogue = Catalogue.here()
    outputs: dict[Path, str] = {}
    for target in targets:
        parsed = parse_target(target, flat=wanted.options.layered is False)
        request = request_build(parsed, catalogue, wanted.options, output=None, base=wanted.base, force=wanted.force)
        other = outputs.setdefault(request.output, target)
        if other != target:
            raise WrongInput(
                f"{other} and {target} would both be written to {request.output}",
                fix="Build one of them with a command of its own, and another name with -o.",
            )


def _say_lock_change(plan: BuildPlan, *, written: bool) -> None:
    recipe = plan.request.recipe
    if recipe is not None and plan.locked is not None and not recipe.rebased:
        say_lock_change(plan.locked, recipe.name, written=written)


def _show_work_area(area: WorkArea) -> None:
    if not area.path.exists():
        say(
            f"Large files are stored in {area.path} (chosen by {area.chosen_by}; set CTK_HOME to change it).",
            stderr=True,
        )
