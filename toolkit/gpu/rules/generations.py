"""Which GPUs a build has code for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.compatibility import Gpu, compatibility
from toolkit.gpu.fit import Build, misfits
from toolkit.gpu.rules.libraries import loaded_cudnn
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import FrameworkCase, FrameworkFacts, ImageCase, ImageFacts

_FIX = (
    "Choose another release: older GPUs need older builds (for V100 and P100: CUDA 12 and cuDNN before 9.11), "
    "newer GPUs newer ones."
)


def gpu_generations(case: FrameworkCase) -> Iterator[Finding]:
    """Whether the build runs on the target's GPU; without a target, for which generations there is code."""
    framework, gpu = case.framework, case.target.its_gpu()
    if not framework.build.gpu:
        return
    title, build = f"{framework.title} {framework.version}", build_of(framework, case.image)
    if gpu is not None:
        yield from _unserved(title, build, gpu)
    elif build.rocm is not None:
        yield Finding(
            "gpu-generations", Severity.INFO, f"{title} is built for AMD GPUs, {f'ROCm {build.rocm}'.strip()}."
        )
    elif build.code:
        rows = compatibility().generations
        served = [name for name, capability in rows if not any(misfits(build, Gpu(name, capability)))]
        if served:
            yield Finding("gpu-generations", Severity.INFO, f"{title} has code for {', '.join(served)}.")


def toolkit_without_framework(case: ImageCase) -> Iterator[Finding]:
    """Whether the image's CUDA runs on the target's GPU, where no framework says what it needs."""
    gpu, cuda = case.target.its_gpu(), case.image.library_version("cudart")
    if gpu is not None and cuda is not None and not case.image.frameworks:
        build = Build(cuda=cuda, cudnn=case.image.library_version("cudnn"))
        yield from _unserved(f"the image's CUDA {cuda}", build, gpu)


def other_software(case: ImageCase) -> Iterator[Finding]:
    """Programs for GPUs that are no framework with a verdict: what their files tell."""
    gpu = case.target.its_gpu()
    for software in case.image.others:
        note = software.note or f"it has code for {' '.join(software.code)}"
        yield Finding("gpu-software", Severity.INFO, f"{software} is in {software.path}: {note}.")
        for misfit in misfits(Build(code=software.code), gpu) if gpu and software.code else ():
            yield Finding(
                "gpu-not-covered", Severity.WARNING, f"{software} does not run on {gpu}: {misfit.reason}.", _FIX
            )


def _unserved(title: str, build: Build, gpu: Gpu) -> list[Finding]:
    found = []
    for misfit in misfits(build, gpu):
        if misfit.certain:
            message = f"{title} does not run on {gpu}: {misfit.reason}."
            found.append(Finding("gpu-not-covered", Severity.ERROR, message, _FIX))
        else:
            message = f"It is not known whether {title} runs on {gpu}: {misfit.reason}."
            found.append(
                Finding("gpu-support-unknown", Severity.WARNING, message, "Try it: `ctk check-gpu` on a node.")
            )
    return found


def build_of(framework: FrameworkFacts, facts: ImageFacts) -> Build:
    """What decides on which GPUs a framework of an image runs."""
    build, cudnn = framework.build, loaded_cudnn(framework, facts.libraries)
    version = cudnn.version if cudnn else None
    return Build(framework.known, framework.version, build.cuda, version, build.architectures, build.rocm)
