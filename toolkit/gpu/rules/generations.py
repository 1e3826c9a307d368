"""Which GPUs a build has code for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.compatibility import compatibility
from toolkit.gpu.rules.libraries import loaded_cudnn
from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.gpu.compatibility import Capability
    from toolkit.gpu.facts import FrameworkCase, FrameworkFacts, ImageFacts, TargetMachine

_ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def gpu_generations(case: FrameworkCase) -> Iterator[Finding]:
    """Whether there is code for the target's GPU; without a target, for which generations there is."""
    framework, facts, target = case.framework, case.image, case.target
    if not framework.build.gpu:
        return
    title = f"{framework.title} {framework.version}"
    if target.capability is None:
        served = [
            name for name, capability in compatibility().generations if covers(framework, facts, capability) is None
        ]
        if framework.build.architectures and served:
            names = ", ".join(served)
            yield Finding("gpu-generations", Severity.INFO, f"{title} has code for {names}.")
        return
    reason = covers(framework, facts, target.capability)
    if reason is not None:
        yield Finding(
            "gpu-not-covered",
            Severity.ERROR,
            f"{title} does not run on {_name(target)}: {reason}.",
            "Choose another release: older GPUs need older builds (for V100 and P100: CUDA 12 and cuDNN before 9.11), "
            "newer GPUs newer ones.",
        )


def covers(framework: FrameworkFacts, facts: ImageFacts, capability: Capability) -> str | None:
    """Why there is no code for a GPU of `capability`; None if there is, or nothing tells."""
    cudnn = loaded_cudnn(framework, facts.libraries)
    versions = [("CUDA", framework.build.cuda), ("cuDNN", cudnn.version if cudnn else None)]
    for drop in compatibility().dropped:
        for what, version in versions:
            if what == drop.what and version and satisfies(version, drop.versions) and capability < drop.least:
                return drop.reason
    architectures = framework.build.architectures
    if architectures and not has_code(architectures, capability, framework.build.cuda):
        jetson = capability in compatibility().integrated.capabilities
        return f"it has code for {' '.join(architectures)} only{', and this is a Jetson' if jetson else ''}"
    return None


def has_code(architectures: Iterable[str], capability: Capability, cuda: str | None = None) -> bool:
    """Whether a GPU runs any of the code: binary code, or PTX that its driver compiles."""
    known = list(architectures)
    return has_binary(known, capability, cuda) or any(
        name.startswith("compute_") and not suffix and capability >= own for name, own, suffix in map(_parsed, known)
    )


def has_binary(architectures: Iterable[str], capability: Capability, cuda: str | None = None) -> bool:
    """Whether there is binary code for a GPU: it serves its own major from its minor on, `a` code only its own.

    Source: NVIDIA, CUDA C++ Programming Guide, Binary Compatibility. `f` code serves its family, which is its major
    here. `cuda` is the release that the code was built with.
    """
    for name, own, suffix in map(_parsed, architectures):
        if name.startswith("sm_") and (capability == own if suffix == "a" else _serves(own, capability, cuda)):
            return True
    return False


def _parsed(architecture: str) -> tuple[str, Capability, str]:
    match = _ARCHITECTURE.fullmatch(architecture)
    return (match[0], (int(match[2]), int(match[3])), match[4]) if match else ("", (0, 0), "")


def _serves(own: Capability, capability: Capability, cuda: str | None) -> bool:
    """Binary code for `own` on a GPU of `capability`; between Jetson and other GPUs there is no compatibility."""
    integrated = compatibility().integrated
    if own in integrated.capabilities:
        return capability == own or {own, capability} == integrated.renamed
    if capability in integrated.capabilities and not (cuda and satisfies(cuda, integrated.unified)):
        return False
    return capability[0] == own[0] and capability[1] >= own[1]


def _name(target: TargetMachine) -> str:
    capability = ".".join(map(str, target.capability or ()))
    return f"{target.gpu} (compute capability {capability})" if target.gpu else f"compute capability {capability}"
