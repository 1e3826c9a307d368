"""Whether a framework has GPU code, and whether its files exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import FrameworkCase


def cpu_only_build(case: FrameworkCase) -> Iterator[Finding]:
    """The build has no GPU code: no driver and no library will change that."""
    framework = case.framework
    if framework.build.gpu or not framework.build.complete:
        return
    name = f"{framework.distribution.name} {framework.version}"
    yield Finding(
        "cpu-only-build",
        Severity.WARNING,
        f"{framework.title}: {name} is built without CUDA.",
        framework.advice("cpu-only-build"),
    )


def incomplete_framework(case: FrameworkCase) -> Iterator[Finding]:
    """Its metadata exists, but its files are missing."""
    framework = case.framework
    fix = "Its files were removed or overwritten. Rebuild the image from its base."
    if not framework.build.complete:
        yield Finding(
            "framework-incomplete",
            Severity.ERROR,
            f"{framework.title}: {framework.distribution.name} {framework.distribution.version} is "
            f"installed in {framework.distribution.directory}, but some of its files are missing.",
            fix,
        )
    elif framework.lost:
        names = ", ".join(framework.lost[:3]) + (", …" if len(framework.lost) > 3 else "")
        number = count(len(framework.lost), "library", "libraries")
        yield Finding(
            "framework-incomplete",
            Severity.ERROR,
            f"{framework.title} {framework.version}: the image lacks {number} that a RECORD lists: {names}.",
            fix,
        )
