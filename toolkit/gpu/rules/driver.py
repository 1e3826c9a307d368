"""Which driver the image needs, and whether the image itself stands in the driver's way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.compatibility import compatibility, parse_driver
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import FrameworkFacts, ImageFacts, Target


def driver_floor(framework: FrameworkFacts, target: Target) -> Iterator[Finding]:
    """The oldest driver for the framework's CUDA, held against the target's driver where it is known."""
    cuda = framework.build.cuda
    floor = compatibility().floor(cuda) if framework.build.gpu and cuda else None
    if floor is None:
        return
    title = f"{framework.title} {framework.version} (CUDA {cuda})"
    if target.driver is None:
        yield Finding("minimum-driver", Severity.INFO, f"{title} needs NVIDIA driver {floor.minimum} or newer.")
    elif parse_driver(target.driver) < parse_driver(floor.minimum):
        yield Finding(
            "driver-too-old",
            Severity.ERROR,
            f"{title} needs NVIDIA driver {floor.minimum} or newer, and the target has {target.driver}.",
            "Use an image of an older CUDA, or ask the site for a newer driver. On data-centre GPUs a cuda-compat "
            "package of this CUDA, first in LD_LIBRARY_PATH, can bridge one major.",
        )
    elif floor.full is not None and parse_driver(target.driver) < parse_driver(floor.full):
        yield Finding(
            "driver-before-toolkit",
            Severity.INFO,
            f"{title} runs on driver {target.driver} by minor-version compatibility: code that is compiled at run time "
            f"(PTX) needs {floor.full}.",
        )


def base_requires_cuda(facts: ImageFacts) -> Iterator[Finding]:
    """What NVIDIA's base image demands in NVIDIA_REQUIRE_CUDA; `--nv` does not enforce it, only `--nvccli` does."""
    match = re.search(r"\bcuda>=(\d+\.\d+)", facts.inventory.variable("NVIDIA_REQUIRE_CUDA"))
    if match is None:
        return
    floor = compatibility().floor(match[1])
    means = f", that is driver {floor.minimum} or newer by minor-version compatibility" if floor else ""
    yield Finding(
        "base-requires-cuda", Severity.INFO, f"The image's base asks for a driver of CUDA {match[1]} or newer{means}."
    )


def own_driver_library(facts: ImageFacts) -> Iterator[Finding]:
    """A libcuda of the image's own: a stub, or one for forward compatibility, before the one that `--nv` binds."""
    for path, way in facts.drivers:
        first = way in ("LD_LIBRARY_PATH", "LD_PRELOAD")
        if "/stubs/" in path:
            if first:
                yield Finding(
                    "stub-libcuda-first",
                    Severity.ERROR,
                    f"{path} is a stub for linking, and {way} leads to it before the driver's own libcuda: "
                    "every CUDA call fails.",
                    f"Remove it from {way} in the image.",
                )
            else:
                yield Finding(
                    "stub-libcuda",
                    Severity.INFO,
                    f"{path} is a stub for linking; it is loaded only where --nv was forgotten (error 34).",
                )
        elif first:
            yield Finding(
                "compat-libcuda-first",
                Severity.WARNING,
                f"{path} comes before the driver's own libcuda: forward compatibility, which works only on "
                "data-centre GPUs with a driver older than it (else errors 803 and 804).",
                "Take the folder out of LD_LIBRARY_PATH unless the nodes' driver is too old for this CUDA.",
            )
        else:
            yield Finding(
                "own-libcuda",
                Severity.INFO,
                f"{path} is a libcuda of the image's own; with --nv the host's comes before it.",
            )
