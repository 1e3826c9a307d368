"""Which bases of the catalogue serve a machine: rules over what is recorded of a base, before anything is pulled."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.gpu.compatibility import Gpu, compatibility, gpu_name
from toolkit.gpu.fit import Build, impossible_driver, misfits, needs_newer_compiler, too_old
from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.recipes.model import ARCHITECTURES
from toolkit.recipes.preference import by_preference, version_of
from toolkit.support.errors import WrongInput
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from toolkit.inventory.knowledge.frameworks import Framework
    from toolkit.recipes.model import Base

_VOLTA = (7, 0)


@dataclass(frozen=True, slots=True)
class BaseRequest:
    """What a base has to serve; None and () if it does not matter.

    It must serve all of `gpus`, and all of `architectures`. `framework` has a PEP 440 specifier, "" for any version.
    `python` and `cuda` are versions or their beginnings ("3.11", "12"), `driver` is the NVIDIA driver of the machines,
    unless a GPU names its own.
    """

    framework: Framework | None = None
    versions: str = ""
    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    architectures: tuple[str, ...] = ()
    python: str | None = None
    cuda: str | None = None
    allow_broken: bool = False


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a base does not serve a request. Not `certain`: what would decide is not recorded."""

    rule: str
    reason: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """The bases that serve a request, best first, and for each other one the first rule that excluded it.

    `unsure` says of some of the fitting ones, which come last, what is not recorded of them.
    """

    fitting: tuple[Base, ...]
    excluded: dict[str, Exclusion]
    unsure: dict[str, Exclusion]


def choose(bases: Iterable[Base], request: BaseRequest) -> Choice:
    """Sort out and order `bases`.

    See `by_preference`. If no machine is named, a base that runs on more GPU generations comes before a newer one.
    """
    offered, excluded, unsure = [], {}, {}
    for base in bases:
        found = list(exclusions(base, request))
        certain = [reason for reason in found if reason.certain]
        if certain:
            excluded[base.name] = certain[0]
            continue
        offered.append(base)
        if found:
            unsure[base.name] = found[0]
    served = _serves if not request.gpus and request.driver is None else None
    ordered = sorted(by_preference(offered, served), key=lambda base: place(base, request, unsure))
    return Choice(tuple(ordered), excluded, unsure)


def place(base: Base, request: BaseRequest, unsure: Container[str]) -> tuple[bool, bool]:
    """What comes before any preference: whether it certainly runs, and whether it is for the vendor of the GPUs."""
    amd = any(gpu.amd is not None for gpu in request.gpus)
    return base.name in unsure, (base.rocm is not None) is not amd


def exclusions(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    """Every reason for which `base` does not serve `request`."""
    for rule in _RULES:
        yield from rule(base, request)


def _broken(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    if base.broken and not request.allow_broken:
        yield Exclusion("broken", base.broken)


def _framework(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    wanted = request.framework
    if wanted is None:
        return
    name = canonicalize_name(base.framework or "")
    if not (wanted.is_variant(name) or name in wanted.bases):
        yield Exclusion("framework", f"it has no {wanted.title}")
    elif request.versions and not (base.framework_version and satisfies(base.framework_version, request.versions)):
        yield Exclusion("framework-version", f"it has {wanted.title} {base.framework_version or 'of unknown version'}")


def implied_architectures(request: BaseRequest) -> tuple[str, ...]:
    """The architectures that are asked for, or those of the GPUs: some exist only beside one kind of processor.

    If such a GPU is named, others are taken for those of x86_64 nodes. () if any will do.
    """
    own = [processor_of(gpu) for gpu in request.gpus]
    if request.architectures or not any(own):
        return request.architectures
    return tuple(name for name in ARCHITECTURES if name in {processor or "x86_64" for processor in own})


def processor_of(gpu: Gpu) -> str | None:
    """The architecture of the only processors beside which a GPU exists; None if there are several."""
    own = compatibility().processors.get(gpu_name(gpu.name) or "")
    return own or ("aarch64" if gpu.capability in compatibility().arm else None)


def refuse_contradiction(request: BaseRequest) -> None:
    """Raise WrongInput (`wrong-architecture`) for a GPU that exists only beside another processor than those named."""
    named = request.architectures
    gpus = {gpu.name: own for gpu in request.gpus if named and (own := processor_of(gpu)) and own not in named}
    for own in dict.fromkeys(gpus.values()):
        names = ", ".join(name for name, processor in gpus.items() if processor == own)
        kind = "Arm processor (aarch64)" if own == "aarch64" else "x86-64 processor"
        raise WrongInput(
            f"{names} exists only beside an {kind}, and the architecture is {', '.join(named)}",
            fix=f"Name {own} as architecture, too, or leave out the GPU.",
            code="wrong-architecture",
        )


def _architecture(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    wanted = implied_architectures(request)
    if base.architectures and not set(wanted) <= set(base.architectures):
        yield Exclusion("architecture", f"it is for {', '.join(base.architectures)}")
    elif wanted and not base.architectures:
        yield Exclusion("architecture", "its architectures are not recorded", certain=False)


def _python(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    if request.python and not _begins(base.python, request.python):
        yield Exclusion("python", f"it has Python {base.python}" if base.python else "its Python is not recorded")


def _cuda(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    if request.cuda and not _begins(base.cuda, request.cuda):
        yield Exclusion("cuda", f"it has CUDA {base.cuda}" if base.cuda else "it has no CUDA that is recorded")


def _driver(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    """A driver that the GPU cannot have, or that is too old for the base's CUDA or for its PTX (compatibility.toml)."""
    machines = _machines(request)
    for gpu, driver in machines:
        reason = impossible_driver(gpu.capability, driver) if gpu else None
        if reason is not None:
            yield Exclusion("driver", f"{gpu}: {reason}")
    floor = compatibility().floor(base.cuda) if base.cuda else None
    minimum = base.driver or (floor.minimum if floor else None)
    for gpu, driver in machines if _uses_gpu(base) else ():
        if driver is None:
            continue
        if minimum is None:
            yield Exclusion("driver", "the driver that it needs is not recorded", certain=False)
        elif too_old(minimum, driver):
            yield Exclusion("driver", f"CUDA {base.cuda} needs NVIDIA driver {minimum} or newer")
        elif gpu and gpu.capability and needs_newer_compiler(_build(base), floor, gpu.capability, driver):
            full = floor.full if floor else ""
            yield Exclusion("ptx", f"it has only PTX for {gpu}, which driver {full} or newer compiles")


def _machines(request: BaseRequest) -> list[tuple[Gpu | None, str | None]]:
    """Each GPU with its driver; the driver alone if no GPU is named."""
    return [(gpu, gpu.driver or request.driver) for gpu in request.gpus] or [(None, request.driver)]


def _gpu(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    """A base without framework, CUDA and ROCm serves any GPU: they come from packages."""
    if base.rocm and request.driver and not request.gpus:
        yield Exclusion("gpu", "it is for AMD GPUs")
    elif base.rocm or _uses_gpu(base):
        for gpu in request.gpus:
            yield from _one_gpu(base, gpu)


def _one_gpu(base: Base, gpu: Gpu) -> Iterator[Exclusion]:
    found = list(misfits(_build(base), gpu))
    certain = [misfit for misfit in found if misfit.certain]
    yield from (Exclusion(misfit.rule, misfit.reason) for misfit in certain)
    if certain:
        return
    for drop in compatibility().dropped:
        old = gpu.capability is not None and gpu.capability < drop.least
        if drop.what == "cuDNN" and old and _may_be(base, drop.versions):
            yield Exclusion("cudnn-unknown", f"its exact cuDNN is not recorded; {drop.reason}", certain=False)
    yield from (Exclusion(misfit.rule, misfit.reason, certain=False) for misfit in found)
    if gpu.capability is None:
        return
    if not (found or base.code) and base.framework and ".".join(map(str, gpu.capability)) not in base.runs_on:
        yield Exclusion("code-unknown", "the GPUs that its framework serves are not recorded", certain=False)


def _build(base: Base) -> Build:
    framework = knowledge().framework_of(canonicalize_name(base.framework)) if base.framework else None
    return Build(framework, base.framework_version, base.cuda, base.cudnn, base.code, base.rocm)


def _may_be(base: Base, versions: str) -> bool:
    """Whether a base with a framework may hold a cuDNN of `versions`: it is not recorded, or only its major is."""
    majors = Version(versions.partition(",")[0].lstrip(">=")).release[:1]
    if base.framework is None or base.cuda is None or version_of(base.cuda).release < (12,):
        return False
    return base.cudnn is None or version_of(base.cudnn).release == majors


# In the order in which a user would ask.
_RULES: tuple[Callable[[Base, BaseRequest], Iterator[Exclusion]], ...] = (
    *(_framework, _broken, _architecture, _python, _cuda, _gpu, _driver),
)


def _uses_gpu(base: Base) -> bool:
    """Whether a base is for NVIDIA GPUs."""
    return base.cuda is not None or (base.framework is not None and base.rocm is None)


def _serves(base: Base) -> int:
    """How many of the GPU generations of today's clusters a base serves: those since Volta."""
    rows = [Gpu(*row) for row in compatibility().generations if row[1] >= _VOLTA]
    return sum(not any(_one_gpu(base, gpu)) for gpu in rows)


def _begins(version: str | None, wanted: str) -> bool:
    return version is not None and f"{version}.".startswith(f"{wanted}.")


def parse_framework(text: str) -> tuple[Framework, str]:
    """The framework and the specifier of "torch", "PyTorch", "tensorflow==2.15". Raises WrongInput for another."""
    from packaging.requirements import InvalidRequirement, Requirement

    known = knowledge().frameworks
    by_word = {
        canonicalize_name(word): framework
        for framework in known
        for word in (framework.name, framework.title, framework.module, framework.install, *framework.variants)
    }
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise WrongInput(
            f"{text!r} is not a framework and its version", fix=f"For example: {known[0].name}, {known[0].name}>=2"
        ) from error
    name = canonicalize_name(requirement.name)
    framework = by_word.get(name) or next((_named(found, name) for found in known if name in found.bases), None)
    if framework is None:
        raise WrongInput(
            f"ctk does not know the framework {text!r}.{did_you_mean(text, by_word)}",
            fix=f"Known: {', '.join(framework.name for framework in known)}",
        )
    # "torch==2.5" means any 2.5: bases are recorded with all three numbers.
    return framework, re.sub(r"(?<==)=(\d+(?:\.\d+)?)(?=,|$)", r"=\1.*", str(requirement.specifier))


def _named(framework: Framework, base: str) -> Framework:
    """A framework by what only some of its bases have: CuPy as Chainer uses it."""
    return replace(framework, title=base.capitalize(), name=base, variants=(base,), bases=())


def served_gpus(base: Base) -> tuple[str, ...]:
    """The GPU generations that a base is known to serve, oldest first; () if nothing is recorded or it has no CUDA."""
    if not base.code:
        return ()
    rows = compatibility().generations
    return tuple(name for name, capability in rows if not any(_one_gpu(base, Gpu(name, capability))))


def served_range(base: Base) -> str:
    """The oldest and the newest GPU generation that a base serves: "V100 to B200"."""
    served = [name.partition("(")[2].rstrip(")") for name in served_gpus(base)]
    return " to ".join(dict.fromkeys((served[0], served[-1]))) if served else ""
