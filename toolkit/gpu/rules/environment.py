"""Variables of the image that hide the GPU from a framework."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.rules.doubts import doubted
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import FrameworkCase, ImageCase

# CUDA ignores what comes behind the first entry that is no device. Source: CUDA C++ Programming Guide, environment
# variables. Frameworks write -1; an empty value hides all devices as well.
_NO_DEVICE = re.compile(r"-\d.*|none|void|nodevfiles", re.IGNORECASE)
_UNSET = "Remove it from the image's environment; set it in the job if needed."


def hidden_devices(case: ImageCase) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES without any device."""
    doubt = case.image.inventory.doubt("CUDA_VISIBLE_DEVICES")
    if doubt is not None and doubt.open:
        return
    value = dict(case.image.inventory.environment).get("CUDA_VISIBLE_DEVICES")
    first = None if value is None else value.partition(",")[0].strip()
    if first is not None and (not first or _NO_DEVICE.fullmatch(first)):
        finding = Finding(
            "gpu-hidden-by-environment",
            Severity.ERROR,
            f"The image sets CUDA_VISIBLE_DEVICES={value}: CUDA shows no device to any program.",
            _UNSET,
        )
        yield doubted(finding, doubt)


def other_platform(case: FrameworkCase) -> Iterator[Finding]:
    """A variable by which the framework chooses another device, such as JAX_PLATFORMS."""
    platform = case.framework.known.platform
    if platform is None or not case.framework.build.gpu:
        return
    for name in platform.variables:
        value = case.image.inventory.variable(name)
        platforms = [word.strip().lower() for word in value.split(",") if word.strip()]
        if platforms and platforms[0] not in platform.gpu:
            only = not set(platform.gpu) & set(platforms)
            finding = Finding(
                "gpu-hidden-by-environment",
                Severity.ERROR if only else Severity.WARNING,
                f"The image sets {name}={value}: {case.framework.title} computes on {platforms[0]}"
                f"{'' if only else ' unless a program asks for another device'}.",
                _UNSET,
            )
            yield doubted(finding, case.image.inventory.doubt(name))
