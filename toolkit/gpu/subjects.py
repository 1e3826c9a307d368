"""What the audit tells the check of a GPU: which frameworks to check, and whether they fit what the probe saw."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.gpu.audit import judge_for
from toolkit.gpu.chain import Subject
from toolkit.gpu.compatibility import parse_driver
from toolkit.gpu.facts import this_machine
from toolkit.gpu.framework_check import checkable
from toolkit.gpu.gather import gather_image_facts
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.findings import Finding, Severity, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.gpu.audit import Audit, FrameworkAudit
    from toolkit.gpu.facts import ImageFacts, TargetMachine
    from toolkit.gpu.links.model import Seen


def read_facts(image: Path) -> tuple[ImageFacts | None, tuple[Finding, ...]]:
    """The facts of the image's file; None, with a warning, if it cannot be read: the driver can be asked without."""
    try:
        with open_image(image) as rootfs:
            return gather_image_facts(rootfs), ()
    except CtkError as problem:
        fix = problem.fix or "Name the framework: --framework NAME."
        message = f"The image's file could not be audited, so that no framework was checked: {problem.message}"
        return None, (Finding("image-not-audited", Severity.WARNING, message, fix),)


def audit_for(facts: ImageFacts, seen: Seen) -> Audit:
    """The audit for the driver, and each type of GPU, that the probe saw."""
    machine = replace(this_machine(), driver=_driver_version(seen))
    types = dict.fromkeys((device.name, device.capability) for device in seen.probe.devices if device.capability)
    targets: list[TargetMachine] = [
        replace(machine, gpu=name, capability=capability) for name, capability in types
    ] or [machine]
    return judge_for(facts, *targets)


def _driver_version(seen: Seen) -> str | None:
    """NVIDIA's driver, as NVML says it, else the host; None if it is not the version of a driver."""
    version = seen.probe.driver or seen.host.driver
    try:
        return version if version and parse_driver(version) else None
    except WrongInput:
        return None


def subjects_of(audit: Audit | None, name: str | None) -> list[Subject]:
    """The frameworks to check: the one of that name, else those of the default Python, with a GPU build if any has."""
    audited = audit.frameworks if audit else ()
    if name is not None:
        title = next((known.title for known in knowledge().frameworks if known.name == name), name)
        own = sorted(
            (found for found in audited if found.facts.name == name), key=lambda found: not found.facts.by_default
        )
        return [Subject(name, title, audit=own[0] if own else None)]
    checked = checkable()
    defaults = [found for found in audited if found.facts.by_default and found.facts.name in checked]
    with_gpu = [found for found in defaults if found.verdict is not Verdict.CPU_ONLY]
    return list(map(_subject, with_gpu or defaults))


def _subject(found: FrameworkAudit) -> Subject:
    return Subject(found.facts.name, found.facts.title, audit=found)


def modules_and_variables(audit: Audit | None) -> tuple[list[str], list[str]]:
    """The modules that ~/.local must not have, and the variables by which these frameworks choose a device."""
    frameworks = [found.facts.known for found in audit.frameworks] if audit else []
    modules = [*(known.module for known in frameworks), *(["numpy"] if frameworks else [])]
    return modules, [name for known in frameworks if known.platform for name in known.platform.variables]
