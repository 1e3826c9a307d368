"""The driver that the image needs, and whether the image hides the host's driver."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.compatibility import compatibility, gpu_name, parse_driver
from toolkit.gpu.fit import Build, impossible_driver, needs_newer_compiler, too_old
from toolkit.gpu.rules.doubts import doubted
from toolkit.gpu.rules.generations import build_of
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.compatibility import DriverFloor
    from toolkit.gpu.facts import FrameworkCase, ImageCase, ImageFacts, TargetMachine


def driver_without_gpu(case: ImageCase) -> Iterator[Finding]:
    """A driver that no node with the target's GPU has: no image changes that."""
    gpu, driver = case.target.its_gpu(), case.target.driver
    reason = impossible_driver(gpu.capability, driver) if gpu else None
    if reason is not None:
        yield Finding(
            "driver-without-gpu",
            Severity.ERROR,
            f"{gpu}: {reason}.",
            "Check both on the node: nvidia-smi --query-gpu=name,driver_version --format=csv",
        )


def driver_floor(case: FrameworkCase) -> Iterator[Finding]:
    """The oldest driver for the framework's CUDA, compared with the target's driver if it is known."""
    framework = case.framework
    cuda = framework.build.cuda if framework.build.gpu else None
    if cuda:
        title = f"{framework.title} {framework.version} (CUDA {cuda})"
        yield from _judge_driver(title, build_of(framework, case.image), case.image, case.target)


def driver_of_toolkit(case: ImageCase) -> Iterator[Finding]:
    """The same for the CUDA of an image without a framework that ctk knows."""
    cuda = case.image.library_version("cudart")
    if cuda and not case.image.frameworks:
        yield from _judge_driver(f"The image's CUDA {cuda}", Build(cuda=cuda), case.image, case.target)


def _judge_driver(title: str, build: Build, facts: ImageFacts, target: TargetMachine) -> list[Finding]:
    floor = compatibility().floor(build.cuda or "")
    if floor is None or target.amd is not None:
        return []
    driver = effective_driver(facts, target)
    if driver is None:
        message = f"{title} needs NVIDIA driver {floor.minimum} or newer."
        return [Finding("minimum-driver", Severity.INFO, message)]
    if too_old(floor.minimum, driver):
        message = f"{title} needs NVIDIA driver {floor.minimum} or newer, and the target has {driver}."
        fix = (
            "Use an image of an older CUDA, or ask the site for a newer driver. On data-centre GPUs a cuda-compat "
            "package of this CUDA, first in LD_LIBRARY_PATH, can bridge one major version."
        )
        return [Finding("driver-too-old", Severity.ERROR, message, fix)]
    return [_before_toolkit(title, build, target, driver, floor)] if too_old(floor.full, driver) else []


def _before_toolkit(title: str, build: Build, target: TargetMachine, driver: str, floor: DriverFloor) -> Finding:
    """A driver that serves the build by minor-version compatibility: binary code runs, PTX does not."""
    gpu, full = target.its_gpu(), floor.full
    generations = [(gpu.name, gpu.capability)] if gpu else compatibility().generations
    by_ptx = [
        name
        for name, capability in generations
        if capability and needs_newer_compiler(build, floor, capability, driver)
    ]
    if not by_ptx:
        return Finding(
            "driver-before-toolkit",
            Severity.INFO,
            f"{title} runs on driver {driver} by minor-version compatibility: code that is compiled at run time (PTX) "
            f"needs {full}.",
        )
    return Finding(
        "ptx-needs-newer-driver",
        Severity.ERROR if gpu else Severity.WARNING,
        f"{title} has no binary code for {', '.join(by_ptx)}, only PTX, and driver {driver} "
        f"cannot compile the PTX of CUDA {build.cuda}: this needs {full} or newer.",
        "Use nodes with a newer driver, or a build that has binary code for this GPU or uses an older CUDA.",
    )


def base_requires_cuda(case: ImageCase) -> Iterator[Finding]:
    """What NVIDIA's base image demands in NVIDIA_REQUIRE_CUDA; `--nv` does not enforce it, only `--nvccli` does."""
    match = re.search(r"\bcuda>=(\d+\.\d+)", case.image.inventory.variable("NVIDIA_REQUIRE_CUDA"))
    if match is None:
        return
    floor = compatibility().floor(match[1])
    means = f", that is driver {floor.minimum} or newer by minor-version compatibility" if floor else ""
    yield Finding(
        "base-requires-cuda", Severity.INFO, f"The image's base requires a driver for CUDA {match[1]} or newer{means}."
    )


def effective_driver(facts: ImageFacts, target: TargetMachine) -> str | None:
    """The driver version that the framework meets: the image's own libcuda where forward compatibility serves it."""
    first = next((path for path, way in facts.drivers if way == "LD_LIBRARY_PATH"), None)
    version = facts.driver_versions.get(first or "")
    if target.driver is None or version is None or _serves_forward(target) is False:
        return target.driver
    return max(target.driver, version, key=parse_driver)


def _serves_forward(target: TargetMachine) -> bool | None:
    """Whether forward compatibility is for the target's GPU; None if unknown."""
    if target.capability in compatibility().integrated.capabilities:
        return True
    return compatibility().forward.get(gpu_name(target.gpu or "") or "")


def _compat(path: str, version: str | None, target: TargetMachine) -> Finding:
    """A libcuda of cuda-compat that comes first: for an older driver of a data-centre GPU, and fatal elsewhere."""
    what = f"{path}{f' (driver {version})' if version else ''} comes before the driver's libcuda"
    out = "Remove the directory from LD_LIBRARY_PATH in the image, or set LD_LIBRARY_PATH for these nodes without it."
    serves = _serves_forward(target)
    if serves is False and (target.driver is None or version is None or target.driver != version):
        reason = f"forward compatibility is for data-centre GPUs, and on {target.gpu} fails with error 804."
        return Finding("compat-libcuda-first", Severity.ERROR, f"{what}: {reason}", out)
    if target.driver is None or version is None:
        return Finding(
            "compat-libcuda-first",
            Severity.WARNING,
            f"{what}: forward compatibility, which works only on data-centre GPUs with a driver older than it (else "
            "errors 803 and 804).",
            "Remove the directory from LD_LIBRARY_PATH unless the nodes' driver is too old for this CUDA.",
        )
    if parse_driver(target.driver) > parse_driver(version):
        reason = f"the target's driver {target.driver} is newer, which fails with error 803."
        return Finding("compat-libcuda-first", Severity.ERROR, f"{what}: {reason}", out)
    served = "forward compatibility applies" if serves else "forward compatibility works on data-centre GPUs only"
    return Finding(
        "compat-libcuda-first",
        Severity.INFO if serves else Severity.WARNING,
        f"{what}, and the target's driver is {target.driver}: {served}.",
        None if serves else "Name the GPU with --gpu; on GeForce cards this fails with error 804.",
    )


def own_driver_library(case: ImageCase) -> Iterator[Finding]:
    """A libcuda of the image's own: a stub, or one for forward compatibility, before the one that `--nv` binds."""
    for path, way in case.image.drivers:
        yield doubted(_own_driver_library(case, path, way), case.image.inventory.doubt(way))


def _own_driver_library(case: ImageCase, path: str, way: str) -> Finding:
    first = way in ("LD_LIBRARY_PATH", "LD_PRELOAD")
    if "/stubs/" in path and first:
        return Finding(
            "stub-libcuda-first",
            Severity.ERROR,
            f"{path} is a stub for linking, and {way} puts it before the driver's libcuda: every CUDA call fails.",
            f"Remove it from {way} in the image.",
        )
    if "/stubs/" in path:
        return Finding(
            "stub-libcuda",
            Severity.INFO,
            f"{path} is a stub for linking; it is loaded only without --nv (error 34).",
        )
    if first:
        return _compat(path, case.image.driver_versions.get(path), case.target)
    return Finding(
        "own-libcuda",
        Severity.INFO,
        f"{path} is the image's own libcuda; with --nv the host's is loaded instead.",
    )
