"""Which bases of the catalogue serve a machine: rules over what is recorded of a base, before anything is pulled."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.gpu.compatibility import compatibility, gpu_name, parse_driver
from toolkit.gpu.machine_code import has_binary, has_code
from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.recipes.preference import by_preference, version_of
from toolkit.support.errors import WrongInput
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolkit.gpu.compatibility import Capability
    from toolkit.inventory.knowledge.frameworks import Framework
    from toolkit.recipes.model import Base

_VOLTA = (7, 0)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU type: its name for users, and its compute capability."""

    name: str
    capability: Capability

    def __str__(self) -> str:
        return f"{self.name} (compute capability {'.'.join(map(str, self.capability))})"


@dataclass(frozen=True, slots=True)
class BaseRequest:
    """What a base has to serve; None and () if it does not matter.

    It must serve all of `gpus`, and all of `architectures`. `framework` has a PEP 440 specifier, "" for any version.
    `python` and `cuda` are versions or their beginnings ("3.11", "12"), `driver` is the NVIDIA driver of the machine.
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
    fitting, possible, excluded, unsure = [], [], {}, {}
    for base in bases:
        found = list(exclusions(base, request))
        certain = [reason for reason in found if reason.certain]
        if certain:
            excluded[base.name] = certain[0]
        elif found:
            possible.append(base)
            unsure[base.name] = found[0]
        else:
            fitting.append(base)
    served = _serves if not request.gpus and request.driver is None else None
    return Choice((*by_preference(fitting, served), *by_preference(possible, served)), excluded, unsure)


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
    """The architectures that are asked for, or those of the GPUs: some exist only beside an Arm processor.

    Others are beside x86_64 processors, if no architecture is named. () if any will do.
    """
    with_arm = [is_with_arm(gpu.name) for gpu in request.gpus]
    if request.architectures or not any(with_arm):
        return request.architectures
    return ("aarch64",) if all(with_arm) else ("x86_64", "aarch64")


def is_with_arm(gpu: str) -> bool:
    """Whether a GPU exists only beside an Arm processor."""
    return gpu_name(gpu) in compatibility().with_arm


def refuse_contradiction(request: BaseRequest) -> None:
    """Raise WrongInput (`wrong-architecture`) for a GPU that exists only beside another processor than those named."""
    named = request.architectures
    gpus = [gpu.name for gpu in request.gpus if is_with_arm(gpu.name)]
    if named and gpus and "aarch64" not in named:
        raise WrongInput(
            f"{', '.join(gpus)} exists only beside an Arm processor (aarch64), and the architecture is "
            f"{', '.join(named)}",
            fix="Name aarch64 as architecture, too, or leave out the GPU.",
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
    """The floor of the base's CUDA; below the toolkit's own driver PTX cannot be compiled (compatibility.toml)."""
    if request.driver is None or not _uses_gpu(base):
        return
    for gpu in request.gpus:
        first = compatibility().floor(compatibility().first_cuda.get(gpu.capability, ""))
        if first and parse_driver(request.driver) < parse_driver(first.full or first.minimum):
            yield Exclusion("driver", f"{gpu} needs NVIDIA driver {first.full or first.minimum} or newer")
    floor = compatibility().floor(base.cuda) if base.cuda else None
    minimum = base.driver or (floor.minimum if floor else None)
    if minimum is None:
        yield Exclusion("driver", "the driver that it needs is not recorded", certain=False)
    elif parse_driver(request.driver) < parse_driver(minimum):
        yield Exclusion("driver", f"CUDA {base.cuda} needs NVIDIA driver {minimum} or newer")
    elif floor and floor.full and parse_driver(request.driver) < parse_driver(floor.full):
        for gpu in request.gpus:
            known = base.code and has_code(base.code, gpu.capability, base.cuda)
            if known and not has_binary(base.code, gpu.capability, base.cuda):
                yield Exclusion("ptx", f"it has only PTX for {gpu}, which driver {floor.full} or newer compiles")


def _gpu(base: Base, request: BaseRequest) -> Iterator[Exclusion]:
    """A base without framework and CUDA serves any GPU: both come from packages."""
    if base.rocm and (request.gpus or request.driver):
        yield Exclusion("gpu", "it is for AMD GPUs")
    elif _uses_gpu(base):
        for gpu in request.gpus:
            yield from _one_gpu(base, gpu)


def _one_gpu(base: Base, gpu: Gpu) -> Iterator[Exclusion]:
    versions = (("CUDA", base.cuda), ("cuDNN", base.cudnn))
    for drop in compatibility().dropped:
        if gpu.capability >= drop.least:
            continue
        if any(what == drop.what and version and satisfies(version, drop.versions) for what, version in versions):
            yield Exclusion("dropped", f"{drop.reason}: no {gpu}")
        elif drop.what == "cuDNN" and _may_be(base, drop.versions):
            yield Exclusion("cudnn-unknown", f"its exact cuDNN is not recorded; {drop.reason}", certain=False)
    if gpu.capability in compatibility().integrated.capabilities:
        yield Exclusion("jetson", f"{gpu} is a Jetson, which needs NVIDIA's L4T images")
    elif base.code and not has_code(base.code, gpu.capability, base.cuda):
        yield Exclusion("no-code", f"it has no code for {gpu}: {' '.join(base.code)}")
    elif base.cuda and _is_before(base.cuda, compatibility().first_cuda.get(gpu.capability, "0")):
        # Its framework may have PTX, which the driver compiles; the libraries beside it have nothing for this GPU.
        yield Exclusion("older-than-gpu", f"CUDA {base.cuda} is older than {gpu}", certain=not base.code)
    elif not base.code and base.framework:
        yield Exclusion("code-unknown", "the GPUs that its framework serves are not recorded", certain=False)


def _is_before(cuda: str, first: str) -> bool:
    """Whether a CUDA release is older than another; "11" may be any 11."""
    known = version_of(cuda).release
    return known < version_of(first).release[: len(known)]


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
