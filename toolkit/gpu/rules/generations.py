"""Which GPUs a build has code for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.compatibility import compatibility
from toolkit.gpu.machine_code import has_code
from toolkit.gpu.rules.libraries import loaded_cudnn
from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.compatibility import Capability
    from toolkit.gpu.facts import FrameworkCase, FrameworkFacts, ImageFacts, TargetMachine


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


def _name(target: TargetMachine) -> str:
    capability = ".".join(map(str, target.capability or ()))
    return f"{target.gpu} (compute capability {capability})" if target.gpu else f"compute capability {capability}"
