"""The machines that a recipe is for (`[target]`): what its base must serve, and what its image is audited for."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.gpu.choosing import (
    BaseRequest,
    choose,
    exclusions,
    implied_architectures,
    processor_of,
    refuse_contradiction,
)
from toolkit.gpu.compatibility import compatibility, find_gpu, parse_driver
from toolkit.gpu.facts import TargetMachine, this_machine
from toolkit.gpu.fit import too_old
from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.recipes.architectures import architecture_of
from toolkit.recipes.model import Target
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.gpu.compatibility import Gpu
    from toolkit.recipes.model import Base, Recipe

# NVIDIA's wheels that carry the version of CUDA and of cuDNN.
_LIBRARIES = {"nvidia-cuda-runtime": "CUDA", "nvidia-cudnn": "cuDNN"}


def machines(target: Target) -> tuple[TargetMachine, ...]:
    """The machines to audit for: one for each GPU type. Raises WrongInput for a GPU or driver that is none.

    If the target names several architectures, an image for any of them is right.
    """
    machine = replace(this_machine(), driver=target.driver, named=bool(target.gpus or target.architectures))
    if target.architectures:
        only = target.architectures[0] if len(target.architectures) == 1 else None
        machine = replace(machine, architecture=only)
    return tuple(_with_gpu(machine, gpu, target) for gpu in gpus_of(target)) or (machine,)


def _with_gpu(machine: TargetMachine, gpu: Gpu, target: Target) -> TargetMachine:
    """The machine of a GPU: with its own driver, and the processor beside which it exists."""
    processor = None if len(target.architectures) > 1 else processor_of(gpu)
    return replace(
        machine,
        gpu=gpu.name,
        capability=gpu.capability,
        amd=gpu.amd,
        driver=gpu.driver or machine.driver,
        architecture=processor or machine.architecture,
    )


def gpus_of(target: Target) -> tuple[Gpu, ...]:
    """The GPU types of a target, each with its driver. Raises WrongInput for a GPU or driver that is none."""
    for driver in filter(None, (target.driver, *target.drivers)):
        parse_driver(driver)
    drivers = target.drivers or (None,) * len(target.gpus)
    return tuple(find_gpu(gpu, driver) for gpu, driver in zip(target.gpus, drivers, strict=True))


def request_of(recipe: Recipe) -> BaseRequest:
    """What the base of `recipe` must serve. Raises WrongInput for a GPU or driver that is none."""
    target = recipe.target
    named = (architecture_of(recipe),) if target.architectures else ()
    gpus = gpus_of(target)
    # The image for x86_64 of a recipe for two architectures never meets the GPUs of the Arm machines.
    met = tuple(gpu for gpu in gpus if not named or processor_of(gpu) in (None, *named))
    return BaseRequest(gpus=met or gpus, driver=target.driver, architectures=named)


def check_target(recipe: Recipe) -> None:
    """Raise WrongInput if the `[target]` of `recipe` names a GPU or driver that ctk does not know.

    And if it contradicts itself: a GPU exists only beside a processor of an architecture that is not named.
    """
    with _named(recipe):
        whole = replace(request_of(recipe), gpus=gpus_of(recipe.target), architectures=recipe.target.architectures)
        refuse_contradiction(whole)


@contextmanager
def _named(recipe: Recipe) -> Iterator[None]:
    """Name the file of the recipe in errors about its `[target]`."""
    try:
        yield
    except WrongInput as error:
        where = recipe.target.origin or f"{recipe.path}: [target]"
        raise WrongInput(f"{where}: {error.message}", fix=error.fix, code=error.code) from error


def judge_target(recipe: Recipe, bases: Iterable[Base]) -> tuple[Finding, ...]:
    """Whether the base of `recipe` serves the machines of its `[target]`, by what is recorded of the base.

    Raises CheckFailed (`base-does-not-fit`) if it does not, with the base of `bases` that does. If what would decide is
    not recorded, this is a note: the audit of the image reads it. Raises WrongInput (`wrong-architecture`) if a GPU of
    `[target]` exists only beside another processor than this host's, and `[target] arch` does not say so.
    """
    base = recipe.base
    with _named(recipe):
        request = request_of(recipe)
        refuse_contradiction(request)
    _require_architecture(recipe, request)
    if recipe.target == Target() or not base.source:
        return ()
    found = list(exclusions(base, replace(request, allow_broken=True)))
    certain = [reason for reason in found if reason.certain]
    if certain:
        what = ", ".join(request.architectures) if certain[0].rule == "architecture" else _owner(recipe)
        raise CheckFailed(
            f"the base {base.name} does not serve {what}: {certain[0].reason}",
            fix=_instead(base, bases, request),
            code="base-does-not-fit",
        )
    return tuple(
        Finding("base-fit-unknown", Severity.INFO, f"{base.name}: {reason.reason}. The audit of the image decides.")
        for reason in found
    )


def _owner(recipe: Recipe) -> str:
    return recipe.target.origin or f"the [target] of {recipe.path}"


def _require_architecture(recipe: Recipe, request: BaseRequest) -> None:
    """Raise WrongInput (`wrong-architecture`) if a GPU of `[target]` exists only beside another processor."""
    implied, architecture = implied_architectures(request), architecture_of(recipe)
    if implied not in ((), (architecture,)):
        arch = f'"{implied[0]}"' if len(implied) == 1 else f"[{', '.join(map(repr, implied))}]".replace("'", '"')
        raise WrongInput(
            f"{_owner(recipe)} names {', '.join(recipe.target.gpus)}, which needs an image for "
            f"{' and one for '.join(implied)}, and this host is {architecture}",
            fix=f"Add arch = {arch} to [target].",
            code="wrong-architecture",
        )


def judge_packages(recipe: Recipe, versions: Mapping[str, str]) -> None:
    """Raise CheckFailed (`packages-do-not-fit`) if NVIDIA's wheels among `versions` dropped a GPU of the `[target]`.

    So it is with a newer cuDNN than any that a GPU has; and with a CUDA that needs a newer driver. The packages of a
    framework leave these versions open: `jax[cuda12]` takes the newest cuDNN.
    """
    request = request_of(recipe)
    for name, version in versions.items():
        library = next((what for prefix, what in _LIBRARIES.items() if name.startswith(prefix)), None)
        for drop in compatibility().dropped:
            gpu = next((gpu for gpu in request.gpus if gpu.capability and gpu.capability < drop.least), None)
            if library == drop.what and gpu is not None and satisfies(version, drop.versions):
                raise CheckFailed(
                    f"{name} {version} does not serve {gpu}, which {_owner(recipe)} names: {drop.reason}",
                    fix=f'Add "{name}<{drop.versions.partition(",")[0].lstrip(">=")}" to packages.',
                    code="packages-do-not-fit",
                )
        floor = compatibility().floor(version) if library == "CUDA" else None
        drivers = [gpu.driver or request.driver for gpu in request.gpus] or [request.driver]
        old = next((driver for driver in drivers if floor and too_old(floor.minimum, driver)), None)
        if floor and old:
            raise CheckFailed(
                f"{name} {version} needs NVIDIA driver {floor.minimum} or newer, and {_owner(recipe)} names {old}",
                fix="Request a build for an older CUDA, or another base (`ctk bases --driver`).",
                code="packages-do-not-fit",
            )


def _instead(base: Base, bases: Iterable[Base], request: BaseRequest) -> str:
    """The base of the same framework to name, or what else to change."""
    framework = next((known for known in knowledge().frameworks if known.is_variant(base.framework or "")), None)
    choice = choose(bases, replace(request, framework=framework)) if framework else None
    fitting = [base for base in choice.fitting if base.name not in choice.unsure] if choice else []
    if not fitting:
        return "`ctk bases --why` with the same --gpu, --driver and --arch says what excludes each base."
    return f'base = "{fitting[0].name}" serves it; `ctk bases` with --gpu, --driver and --arch lists all that do.'
