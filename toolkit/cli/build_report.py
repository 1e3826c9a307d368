"""What `ctk build` says about an image when it is built, was up to date, or is only planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.cli.documents.images import built_image
from toolkit.cli.next_step import next_for_image
from toolkit.cli.output import print_findings, print_json, print_table, print_text, redacted, say, show_error, suggest
from toolkit.recipes.model import Bootstrap
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.builds.context import BuildContext
    from toolkit.builds.execute import Built
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.record import Record
    from toolkit.builds.request import BuildRequest
    from toolkit.cli.progress import StepTime
    from toolkit.recipes.model import Recipe
    from toolkit.support.errors import CtkError, WrongInput


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the build of one target ended. `document` is that of `--json`, None after an error; `seconds` is wall time,
    and `summary` the result in a few words."""

    target: str
    exit_status: int
    summary: str
    seconds: float = 0.0
    document: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = ()


def failed(target: str, error: CtkError, seconds: float) -> Outcome:
    """Print the error with which the build of a target ended; the other targets are built anyway."""
    show_error(error)
    finding = Finding(error.code, Severity.ERROR, error.message, error.fix)
    return Outcome(target, error.exit_status, f"failed [{error.code}]", seconds, findings=(finding,))


def print_outcomes(outcomes: Sequence[Outcome], *, json: bool) -> None:
    """The report of several targets: one document, or a table."""
    if json:
        builds = [
            {
                "target": outcome.target,
                "exit_status": outcome.exit_status,
                "build": outcome.document,
                "findings": [redacted(found).as_json() for found in outcome.findings],
            }
            for outcome in outcomes
        ]
        print_json("ctk.builds/1", {"builds": builds})
        return
    from toolkit.support.quantities import format_seconds

    say()
    rows = [(outcome.target, outcome.summary, format_seconds(outcome.seconds)) for outcome in outcomes]
    print_table(("target", "result", "time"), rows)


def print_plan(
    plan: BuildPlan, context: BuildContext, not_allowed: WrongInput | None, told: Sequence[Finding], *, json: bool
) -> None:
    """Print the build as a script, or as a document."""
    from toolkit.builds.plan import OwnSource
    from toolkit.builds.script import as_script, build_commands, refused

    if plan.locked is not None and plan.base.image is None and plan.request.recipe is not None:
        _say_base_not_here(plan.request.recipe)
    commands = [*([refused(not_allowed)] if not_allowed is not None else []), *build_commands(plan, context)]
    if json:
        text = None if isinstance(plan.source, OwnSource) else plan.source.text
        document = {"output": str(plan.request.output), "commands": commands, "definition": text}
        print_json("ctk.build-plan/1", document, told)
    else:
        recipe = plan.request.recipe
        print_text(as_script(commands, plan.record.target, recipe.check if recipe else ()))


def _say_base_not_here(recipe: Recipe) -> None:
    if recipe.base.bootstrap != Bootstrap.DEBOOTSTRAP:
        say(
            f"The base {recipe.base.name} is not on this machine: versions are chosen from its entry "
            "in bases.toml, and the script uses pip instead of uv. `ctk build` pulls the base first.",
            stderr=True,
        )


def report_unchanged(request: BuildRequest, record: Record, told: Sequence[Finding], *, json: bool) -> Outcome:
    """Report an image that is up to date; with `json` nothing is printed yet."""
    text = f"{short(request.output)} is up to date: recipe, lock, base and files are unchanged since it was built"
    finding = Finding("nothing-changed", Severity.OK, text, "ctk build --force rebuilds it.")
    if not json:
        say(f"{text}; audit verdict: {record.verdict}. --force rebuilds it.", style="green")
    document = built_image(request.output, request.log, record, request.output.stat().st_size, change=None)
    return Outcome(request.target.text, 0, "up to date", document=document, findings=(*told, finding))


def report_built(
    plan: BuildPlan, built: Built, steps: Sequence[StepTime], told: Sequence[Finding], *, json: bool, verbose: bool
) -> Outcome:
    """Report an image that was built; with `json` nothing is printed yet. If no job could start, the status is 1."""
    from toolkit.inventory.contents.programs import COMMAND_NOT_IN_IMAGE

    if not json:
        _say_built(built, steps, verbose=verbose)
    document = built_image(
        built.output,
        built.log,
        built.record,
        built.size,
        plan.locked.change if plan.locked else None,
        built=True,
        seconds=built.seconds,
        import_seconds=built.import_seconds,
        steps=[(step.name, step.seconds, step.cached) for step in steps],
    )
    status = int(any(finding.code == COMMAND_NOT_IN_IMAGE for finding in built.findings))
    findings = (*told, *built.findings)
    return Outcome(
        plan.request.target.text, status, f"built, {built.record.verdict}", built.seconds, document, findings
    )


def _say_built(built: Built, steps: Sequence[StepTime], *, verbose: bool) -> None:
    from toolkit.support.files import format_size
    from toolkit.support.quantities import format_seconds
    from toolkit.support.text import count

    size = f", {format_size(built.size)}" if built.size else ""
    grave = (Severity.ERROR, Severity.WARNING)
    print_findings(
        finding for finding in built.findings if finding.severity in grave and finding.code != built.record.verdict
    )
    # Without --verbose, each step has been printed with its time when it ended.
    if steps and verbose:
        say("Steps:")
        print_table(("step", "time"), [(step.name, step.time) for step in steps])
    if cached := [step.name for step in steps if step.cached]:
        say(f"From the store: {', '.join(cached)}.")
    say(
        f"Built {short(built.output)} in {format_seconds(built.seconds)}{size}; audit verdict: {built.record.verdict}.",
        style="green",
    )
    if built.record.layers:
        layers = count(len(built.record.layers), "layer")
        say(f"It is a layered image, with {layers} over its base. To share an image, build it with --flat.")
    elif built.form.reason is not None:
        say(f"It is a flat image: {built.form.reason}.")


def suggest_next(request: BuildRequest, outcome: Outcome) -> None:
    """Print the next command for an image that was built or is up to date."""
    if request.sandbox:
        directory = f"{short(request.output)}/"
        suggest(["ctk", "shell", directory], ["ctk", "build", directory, "-o", "NAME.sif"])
    elif outcome.document is not None:
        suggest(next_for_image(Path(short(request.output)), outcome.document["verdict"]))


def short(path: Path) -> str:
    """A path as a user would type it here: with a slash, so that a directory is never taken for a recipe."""
    try:
        return f"./{path.relative_to(Path.cwd())}" if path.is_dir() else str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
