"""Whether a build fits a machine: the rules about GPU, driver, CUDA and code that every command asks.

The audit, `ctk bases`, `[target]`, cluster profiles and `ctk check-gpu` differ in where their facts come from, and in
what they make of an answer. The answers are these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from toolkit.gpu.compatibility import compatibility, parse_driver
from toolkit.gpu.machine_code import has_binary, has_code
from toolkit.inventory.knowledge.frameworks import satisfies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.compatibility import Capability, DriverFloor, Gpu
    from toolkit.inventory.knowledge.frameworks import Framework


@dataclass(frozen=True, slots=True)
class Build:
    """What decides on which GPUs a build runs: as recorded of a base, or read from an image. Unknown is None or ()."""

    framework: Framework | None = None
    version: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    code: tuple[str, ...] = ()
    rocm: str | None = None


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a build does not fit, by a name for the rule. Not `certain`: what would decide is not known."""

    rule: str
    reason: str
    certain: bool = True


def impossible_driver(capability: Capability | None, driver: str | None) -> str | None:
    """Why no node has this GPU with this driver; None if it can, or nothing is known of it."""
    limits = next((row for row in compatibility().limits if capability in row.capabilities), None)
    if limits is None or driver is None:
        return None
    number = parse_driver(driver)
    if limits.last is not None and number[0] > limits.last:
        return f"driver {limits.last} is the last branch for {limits.name}, and {driver} does not know the GPU"
    if limits.first is not None and number < parse_driver(limits.first):
        return f"{limits.name} needs NVIDIA driver {limits.first} or newer, and {driver} does not know the GPU"
    return None


def too_old(minimum: str | None, driver: str | None) -> bool:
    """Whether a driver is older than the one that is needed, if both are known."""
    return minimum is not None and driver is not None and parse_driver(driver) < parse_driver(minimum)


def is_newer_than_known(cuda: str | None) -> bool:
    """Whether a CUDA release is of a later major than all those of which the drivers are known."""
    newest = max(Version(row.cuda).major for row in compatibility().drivers)
    return cuda is not None and not _is_before(cuda, str(newest + 1))


def needs_newer_compiler(build: Build, floor: DriverFloor | None, capability: Capability, driver: str | None) -> bool:
    """Whether there is only PTX for a GPU, of a CUDA release whose PTX the driver cannot compile."""
    if floor is None or not too_old(floor.full, driver) or (build.framework and build.framework.own_ptxas):
        return False
    return has_code(build.code, capability, build.cuda) and not has_binary(build.code, capability, build.cuda)


def misfits(build: Build, gpu: Gpu) -> Iterator[Misfit]:
    """Every reason for which a build for GPUs does not run on `gpu`, whatever the driver."""
    if gpu.amd is not None:
        yield from _on_amd(build, gpu)
    elif build.rocm is not None:
        yield Misfit("gpu", "it is for AMD GPUs")
    elif gpu.capability is not None:
        yield from _dropped(build, gpu, gpu.capability)
        if (code := _code(build, gpu, gpu.capability)) is not None:
            yield code


def _on_amd(build: Build, gpu: Gpu) -> Iterator[Misfit]:
    row = next((row for row in compatibility().amd if row.target == gpu.amd), None)
    if build.rocm is None:
        yield Misfit("gpu", "it is for NVIDIA GPUs")
    elif row is not None and row.first is not None and _is_before(build.rocm, row.first):
        yield Misfit("older-than-gpu", f"ROCm {build.rocm} is older than {gpu}, which needs {row.first}")
    elif row is not None and row.last is not None and _is_before(row.last, build.rocm):
        reason = f"ROCm {row.last} is the last that AMD supports with {gpu}, and the build is for {build.rocm}"
        yield Misfit("unsupported", reason, certain=False)


def _dropped(build: Build, gpu: Gpu, capability: Capability) -> Iterator[Misfit]:
    """A GPU that the build's CUDA or cuDNN no longer supports."""
    versions = {"CUDA": build.cuda, "cuDNN": build.cudnn}
    for drop in compatibility().dropped:
        version = versions[drop.what]
        if capability < drop.least and version and satisfies(version, drop.versions):
            yield Misfit("dropped", f"{drop.reason}: no {gpu}")


def _code(build: Build, gpu: Gpu, capability: Capability) -> Misfit | None:
    """Why the build has no code for a GPU, or libraries without any."""
    first = compatibility().first_cuda.get(_oldest_of_its_major(capability), "0")
    old = build.cuda is not None and _is_before(build.cuda, first)
    listed = " ".join(build.code)
    if capability in compatibility().integrated.capabilities and not has_code(build.code, capability, build.cuda):
        return Misfit("jetson", f"{gpu} is a Jetson, which needs NVIDIA's L4T images", certain=bool(build.code))
    if build.code and not has_code(build.code, capability, build.cuda):
        return Misfit("no-code", f"it has no code for {gpu}: {listed}")
    if build.code and not has_binary(build.code, capability, build.cuda) and (refused := _ptx(build, capability)):
        return Misfit("ptx-fails", refused)
    if old and not build.code:
        certain = Version(str(build.cuda)).major < Version(first).major
        return Misfit("older-than-gpu", f"CUDA {build.cuda} is older than {gpu}", certain=certain)
    if old and not has_binary(build.code, capability, build.cuda):
        # Its framework has PTX, which the driver compiles; the libraries beside it have nothing for this GPU.
        return Misfit(
            "older-than-gpu", f"CUDA {build.cuda} is older than {gpu}, and has only PTX for it", certain=False
        )
    return None


def _ptx(build: Build, capability: Capability) -> str | None:
    """Why the framework's PTX does not run on a GPU; None if it does."""
    for row in build.framework.ptx_fails if build.framework and build.version else ():
        least = tuple(map(int, row.least.split(".")))
        if capability >= least and satisfies(str(build.version), row.versions):
            return row.reason
    return None


def _oldest_of_its_major(capability: Capability) -> Capability:
    """The first GPU whose binary code runs on one of `capability`."""
    return min((known for known in compatibility().first_cuda if known[0] == capability[0]), default=capability)


def _is_before(version: str, first: str) -> bool:
    """Whether a release is older than another; "11" may be any 11."""
    try:
        known = Version(version).release
    except InvalidVersion:
        return False
    return known < Version(first).release[: len(known)]
