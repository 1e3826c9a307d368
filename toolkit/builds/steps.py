"""The steps of a build, from a plan: `ctk build` runs this list, and `--dry-run` prints it as a script.

Only the contents of the image decide the steps.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolkit.builds.bases import uv_copy
from toolkit.builds.files import TextFile, quoted
from toolkit.builds.layers.merge import MergeLayers, flat_name, layered_base, over_flat_base
from toolkit.builds.lending import lend, lent_directory
from toolkit.builds.measuring import measured, packed
from toolkit.builds.offline import KeptBase, require_step
from toolkit.builds.output import check_output
from toolkit.builds.permission import check_permission
from toolkit.builds.plan import OwnSource
from toolkit.builds.private import PrivateFiles
from toolkit.builds.progress import STARTING
from toolkit.builds.reading_back import require_readable
from toolkit.builds.record import CHANGED, OBJECT_NAME, record_beside, write_beside
from toolkit.builds.target import TargetKind
from toolkit.builds.values import export, read_value
from toolkit.builds.wheelhouse import Wheelhouse
from toolkit.gpu.audit import audit_image
from toolkit.gpu.targets import machines
from toolkit.inventory.contents.programs import missing_program
from toolkit.inventory.contents.sbom import OBJECT_NAME as SBOM_NAME
from toolkit.inventory.contents.sbom import sbom_text
from toolkit.inventory.formats.kinds import SANDBOX_MARK
from toolkit.inventory.formats.sif import DataType
from toolkit.inventory.formats.sif_digests import OBJECT_NAME as DIGESTS_NAME
from toolkit.inventory.formats.sif_digests import digests_object
from toolkit.inventory.formats.sif_edit import NewObject, edit_sif
from toolkit.pins.bases.steady import unchanged
from toolkit.pins.guard.log import seconds_of_imports
from toolkit.recipes.model import Target
from toolkit.runtime.area import SCRATCH_VARIABLES, area_environment, scratch_of
from toolkit.runtime.options import without_network
from toolkit.store.keeping import require_used
from toolkit.store.store import Kind
from toolkit.support.certificates import trusting
from toolkit.support.durable import syncing
from toolkit.support.errors import CheckFailed
from toolkit.support.findings import Verdict
from toolkit.support.processes import command_line, stream, visible_command
from toolkit.support.staging import put_in_place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.builds.context import BuildContext
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.record import Record
    from toolkit.builds.state import BuildState
    from toolkit.builds.values import Value
    from toolkit.gpu.audit import Audit
    from toolkit.inventory.formats.sif import Descriptor
    from toolkit.support.findings import Finding


class Step(Protocol):
    """One action of a build."""

    def run(self, state: BuildState) -> None:
        """Run the step. Raises an error that ends the build."""


class ShellStep(Step, Protocol):
    """A step that a shell can do as well."""

    def shell(self) -> str:
        """The commands that do the same without ctk, quoted; comments where ctk alone does something."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Two directories of one build: what is `beside` the output gets there by a rename; `scratch` is for all else."""

    beside: Path
    scratch: Path

    @classmethod
    def of_script(cls, output: Path, context: BuildContext) -> Workspace:
        """The directories of a script: the same each time, and of its output alone."""
        mark = hashlib.sha256(str(output).encode(errors="surrogateescape")).hexdigest()[:8]
        name = f".ctk-{output.name}"
        return cls(output.with_name(name), scratch_of(context.area) / f"{name}-{mark}")


def steps_of(plan: BuildPlan, context: BuildContext, workspace: Workspace) -> tuple[Step, ...]:
    """The steps that build the image of `plan` in `workspace`, and put it in its place."""
    if plan.layers is None:
        return flat_steps(plan, context, workspace)
    from toolkit.builds.layers.build import BuildLayers

    assert plan.base.image is not None and not isinstance(plan.source, OwnSource)  # noqa: S101, PT018
    image, text = workspace.beside / "image", plan.source.text
    lent = _lent(plan, context, workspace)
    files = PrivateFiles.of(plan, context, workspace.scratch)
    layers = files.in_layers(plan.layers) if files is not None else plan.layers
    places = (image, plan.base.image, text, layers, workspace.scratch)
    build = BuildLayers(*places, lent.binds, lent.environment, lent.house)
    return (*([files] if files is not None else []), *lent.files, build, *_finish(plan, context, workspace, image))


def flat_steps(plan: BuildPlan, context: BuildContext, workspace: Workspace) -> tuple[ShellStep, ...]:
    """The steps of a flat image, or of a sandbox."""
    request = plan.request
    image = workspace.beside / "image"
    steps: list[ShellStep] = []
    directory = None
    if isinstance(plan.source, OwnSource):
        source = plan.source.path
    else:
        source, text = workspace.beside / f"{request.target.name}.def", plan.source.text
        if plan.start is not None and (layered := layered_base(plan.start)) is not None:
            directory, text = workspace.scratch, over_flat_base(text, plan.start)
            merged = directory / flat_name(layered)
            steps.append(MergeLayers(plan.base.image or layered, merged, directory, request.options))
        elif (kept := KeptBase.of(plan, context, workspace.scratch)) is not None:
            directory, text = workspace.scratch, kept.definition(text)
            steps.append(kept)
        if (files := PrivateFiles.of(plan, context, workspace.scratch)) is not None:
            directory, text = workspace.scratch, files.in_text(text)
            steps.append(files)
        steps.append(TextFile(source, text))
    if request.target.kind is TargetKind.IMAGE:
        merge = MergeLayers(source, image, workspace.scratch, request.options, is_target=True)
        return (merge, ReadBack(image), *_finish(plan, context, workspace, image))
    if request.recipe is not None:
        lock = plan.locked.lock if plan.locked else None
        require_step(request.recipe, lock, context, packages=True, apt=True)
    lent = _lent(plan, context, workspace)
    argv = context.runtime.build(image, str(source), request.options, lent.binds, login=plan.login)
    steps += [*lent.files, *([lent.house] if lent.house is not None else [])]
    steps += [BuildImage(tuple(argv), lent.environment, directory)]
    steps += [] if request.sandbox else [ReadBack(image)]
    return (*steps, *_finish(plan, context, workspace, image))


@dataclass(frozen=True, slots=True)
class _Lent:
    """What a build uses of this host: files, binds, variables of the runtime's process, and package files."""

    files: tuple[ShellStep, ...]
    binds: tuple[str, ...]
    environment: Mapping[str, Value]
    house: Wheelhouse | None


def _lent(plan: BuildPlan, context: BuildContext, workspace: Workspace) -> _Lent:
    recipe = plan.request.recipe
    product, locked = context.runtime.product, plan.locked
    house = Wheelhouse.of(lent_directory(workspace.scratch), locked.lock if locked else None, context)
    loan = lend(workspace.scratch, product, recipe.indexes if recipe else (), house=house)
    uv = (uv_copy(context.area),) if plan.lends_uv else ()
    environment = {
        **area_environment(context.area),
        **dict.fromkeys(SCRATCH_VARIABLES, str(workspace.scratch)),
        **trusting(),
        **loan.environment,
        **(without_network(product) if context.offline else {}),
    }
    return _Lent((*uv, *loan.files), (*(copy.bind for copy in uv), *loan.binds), environment, house)


def _finish(plan: BuildPlan, context: BuildContext, workspace: Workspace, image: Path) -> tuple[ShellStep, ...]:
    """What is done with an image that was built."""
    request, runtime = plan.request, context.runtime
    # What is large is removed before the image appears: little is left to do, or to interrupt, after it.
    steps = (RemoveScratch(workspace.scratch), AuditImage(image))
    replaced = None if request.force else plan.record.target
    if request.sandbox:
        place = SandboxInPlace(image, request.output, replaced)
        return (*steps, place, RecordBeside(request.output, plan.record))
    document = workspace.beside / OBJECT_NAME
    add = AddRecord(image, document, plan.record, tuple(runtime.add_json(image, document)))
    return (*steps, add, ImageInPlace(image, request.output, replaced))


@dataclass(frozen=True, slots=True)
class BuildImage:
    """The runtime makes the image. Its input is empty: a script may be read from there.

    `directory` is where the definition looks for its base; None for an absolute path.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, Value]
    directory: Path | None = None

    def shell(self) -> str:
        plain = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items() if isinstance(value, str)]
        secrets = [export(name, value) for name, value in self.environment.items() if not isinstance(value, str)]
        enter = [f"cd -- {quoted(self.directory)}"] if self.directory is not None else []
        return "\n".join([*secrets, *enter, " \\\n    ".join([*plain, f"{command_line(self.argv)} < /dev/null"])])

    def run(self, state: BuildState) -> None:
        environment = {name: read_value(value) for name, value in self.environment.items()}
        state.begin_log(visible_command(self.argv, environment))
        state.listener.on_step(STARTING)
        with unchanged(state.plan.request.base_state):
            temporary = Path(environment[SCRATCH_VARIABLES[0]])
            with measured(lambda: packed(temporary), state.listener):
                status = stream(self.argv, state.transcript.take, env=environment, cwd=self.directory)
            if status != 0:
                raise state.failure(status)
        state.import_seconds = seconds_of_imports(state.transcript.last_lines)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """All of the flat SIF `image`, which was just packed, is decompressed."""

    image: Path

    def shell(self) -> str:
        return "# `ctk build` reads all blocks of the image back here."

    def run(self, state: BuildState) -> None:
        state.listener.on_step("reading the image back")
        with syncing(self.image):
            require_readable(
                self.image,
                "the image",
                cores=state.plan.request.options.cores,
                on_progress=state.listener.on_progress,
            )


@dataclass(frozen=True, slots=True)
class RemoveScratch:
    """Remove the scratch directory, with all files that the runtime left there."""

    path: Path

    def shell(self) -> str:
        return removal(self.path)

    def run(self, state: BuildState) -> None:
        state.remove_scratch()


@dataclass(frozen=True, slots=True)
class AuditImage:
    """Audit the image before it is renamed into place: its verdict must be the one that the recipe requires."""

    image: Path

    def shell(self) -> str:
        return "# `ctk build` audits the image here, like `ctk audit`."

    def run(self, state: BuildState) -> None:
        state.listener.on_step("auditing the image")
        recipe = state.plan.request.recipe
        command = recipe.job.command if recipe else ()
        audit = audit_image(self.image, *machines(recipe.target if recipe else Target()), command=command)
        _require_verdict(state.plan, audit)
        state.verdict, state.findings = audit.verdict, (*audit.findings, *_command_findings(state, self.image))
        state.sbom = sbom_text(audit.facts.inventory, state.plan.record.recipe_name or state.plan.request.target.name)


@dataclass(frozen=True, slots=True)
class AddRecord:
    """The record and the bill of materials become objects of the SIF, and then the digests of all objects.

    A script's record has no verdict, and no bill comes with it: `ctk build` builds such an image again.
    """

    image: Path
    document: Path
    record: Record
    argv: tuple[str, ...]

    def shell(self) -> str:
        document = TextFile(self.document, replace(self.record, inputs={}).as_text())
        return f"{document.shell()}\n{command_line(self.argv)} < /dev/null"

    def run(self, state: BuildState) -> None:
        edit_sif(self.image, drop=_is_own, add=own_objects(state.record, state.sbom))
        edit_sif(self.image, drop=lambda _found: False, add=[digests_object(self.image, state.digests)])


def _is_own(found: Descriptor) -> bool:
    """Whether an earlier build of the image left this object: the layers of an image are merged into a copy of it."""
    return found.name in (OBJECT_NAME, SBOM_NAME, DIGESTS_NAME)


def own_objects(record: Record, sbom: str) -> tuple[NewObject, ...]:
    """What ctk adds to every SIF that it builds; a signature covers both."""
    return (
        NewObject(DataType.GENERIC_JSON, OBJECT_NAME, record.as_text().encode(errors="surrogateescape")),
        NewObject(DataType.SBOM, SBOM_NAME, sbom.encode()),
    )


@dataclass(frozen=True, slots=True)
class RecordBeside:
    """The record of a sandbox is a file beside it."""

    sandbox: Path
    record: Record

    def shell(self) -> str:
        return TextFile(record_beside(self.sandbox), replace(self.record, inputs={}).as_text()).shell()

    def run(self, state: BuildState) -> None:
        write_beside(self.sandbox, state.record)


@dataclass(frozen=True, slots=True)
class ImageInPlace:
    """The image is renamed into place. An image of the same target is replaced (`replaced`); None: any."""

    image: Path
    output: Path
    replaced: str | None

    def shell(self) -> str:
        # -T: nothing is moved into a directory of that name.
        move = f"sync -- {quoted(self.image)}\nmv -T -f -- {quoted(self.image)} {quoted(self.output)}"
        return f"{self._check(self._has(self.output))}{move}\nsync -- {quoted(self.output.parent)}"

    def run(self, state: BuildState) -> None:
        # A build takes minutes: the user, or another one, may have put something there.
        check_output(state.plan.request)
        check_permission(state.plan.request)
        require_used(Kind.BASE)
        put_in_place(self.image, self.output)

    def _has(self, record: Path) -> str:
        """Whether `record`, or the SIF with a record in it, is of the same target."""
        return _contains(record, f'"target": {json.dumps(self.replaced, ensure_ascii=False)}')

    def _check(self, may_be_replaced: str) -> str:
        """The command that ends a script if the output exists and must be kept."""
        if self.replaced is None:
            return ""
        text = f"{self.output} exists and was not built by ctk from the same target, or was changed"
        return f"if [ -e {quoted(self.output)} ] && ! {may_be_replaced}; then {ending(text, 2)}; fi\n"


@dataclass(frozen=True, slots=True)
class SandboxInPlace(ImageInPlace):
    """A sandbox is renamed into place; an earlier one is moved aside first, and back if that fails."""

    def shell(self) -> str:
        image, output, old = map(quoted, (self.image, self.output, self.image.with_name("image.old")))
        record = record_beside(self.output)
        unchanged_one = f"{{ {self._has(record)} && ! {_contains(record, CHANGED)}; }}"
        return (
            f"{self._check(unchanged_one)}sync\ntrap '' HUP INT TERM\n"
            f"if [ -d {output}/{SANDBOX_MARK} ]; then mv -T -- {output} {old}; fi\n"
            f"mv -T -- {image} {output} || {{ mv -T -- {old} {output}; exit 1; }}\n"
            f"sync -- {quoted(self.output.parent)}"
        )


def _contains(path: Path, text: str) -> str:
    return f"grep -aqsF -e {shlex.quote(text)} -- {quoted(path)}"


def ending(text: str, status: int) -> str:
    """The commands that end a script."""
    return f"printf '%s\\n' {shlex.quote(text)} >&2; exit {status}"


def removal(*paths: Path) -> str:
    """The command that removes these directories, with what belongs to the subordinate ids of a build without root."""
    words = " ".join(map(quoted, paths))
    return f"rm -rf -- {words} 2> /dev/null || unshare --map-root-user --map-auto rm -rf -- {words}"


def _command_findings(state: BuildState, image: Path) -> tuple[Finding, ...]:
    """Whether a job of the recipe could start: the image is as it should be, so the answer does not undo the build."""
    recipe = state.plan.request.recipe
    found = missing_program(image, recipe.job.command, recipe.job.binds) if recipe else None
    return (found,) if found else ()


def _require_verdict(plan: BuildPlan, audit: Audit) -> None:
    """An image that is broken for the machines of its `[target]` is not built, whatever `[require]` says."""
    recipe = plan.request.recipe
    wanted = recipe.verdict if recipe else None
    if recipe is not None and recipe.target != Target() and audit.verdict is Verdict.GPU_BROKEN:
        wanted = wanted or Verdict.GPU_READY
    if wanted in (None, audit.verdict):
        return
    reasons = "".join(f"; {finding.code}: {finding.message}" for finding in audit.findings)
    raise CheckFailed(
        f"the image of {plan.request.target.text} is {audit.verdict}, and its recipe requires {wanted}{reasons}",
        fix="`ctk explain CODE` explains a finding and how to fix it.",
        code="verdict-not-reached",
    )
