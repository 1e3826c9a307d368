"""`ctk check-gpu`: ask the host, the driver inside the image and its frameworks, and judge the chain."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.gpu.audit import judge_for
from toolkit.gpu.chain import Chain, Subject, driver_links, whole_chain
from toolkit.gpu.compatibility import parse_driver
from toolkit.gpu.facts import this_machine
from toolkit.gpu.framework_check import check_framework, checkable
from toolkit.gpu.gather import gather_image_facts
from toolkit.gpu.host import any_gpu
from toolkit.gpu.links.model import Seen, warning
from toolkit.gpu.probe import probing
from toolkit.gpu.user_environment import judge_environment, user_environment
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.findings import Finding, Verdict
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.gpu.audit import Audit, FrameworkAudit
    from toolkit.gpu.facts import ImageFacts, TargetMachine
    from toolkit.gpu.framework_check import FrameworkCheck
    from toolkit.runtime.engine import Runtime

AUTO, NONE = "auto", "none"
TIMEOUT = 120.0  # seconds; a first cuInit on a node with many GPUs and no persistence daemon takes tens of seconds


@dataclass(frozen=True, slots=True)
class Checked:
    """What was asked and answered, and the chain that follows. `around` are findings beside the chain."""

    seen: Seen
    checks: tuple[FrameworkCheck, ...]
    chain: Chain
    around: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*self.chain.findings, *self.around)


def check_gpu(
    runtime: Runtime,
    image: Path,
    *,
    framework: str = AUTO,
    timeout: float = TIMEOUT,
    on_step: Callable[[str], None] = lambda _: None,
) -> Checked:
    """Check one image on this host; `timeout` seconds for each start of a container.

    The image's file is audited while the driver is asked; then the frameworks that the audit names, or the one that
    `framework` does, compute. Raises WrongInput for a framework that ctk cannot check, ProgramFailed if the container
    does not start.
    """
    check_name(framework)
    host = any_gpu()
    on_step("the driver")
    with probing(runtime, image, host.vendor) as wait:
        facts, doubt = _read(image)
        probe = wait(timeout)
    seen = Seen(host, probe)
    audit = judge_for(facts, *_targets(seen)) if facts else None
    begun = driver_links(seen, audit)
    subjects = _subjects(audit, framework)
    checks: list[FrameworkCheck] = []
    if begun.verdict is GpuVerdict.VISIBLE and framework != NONE:
        for number, (name, subject) in enumerate(subjects):
            on_step(subject.title)
            path = subject.audit.facts.interpreter if subject.audit else ""
            check = check_framework(runtime, image, name, vendor=host.vendor, interpreter=path, timeout=timeout)
            checks.append(check)
            subjects[number] = (name, replace(subject, check=check))
    chain = whole_chain(begun, [subject for _, subject in subjects])
    modules, variables = _of_interest(audit)
    mine = judge_environment(user_environment(os.environ, Path.home(), modules, variables))
    return Checked(seen, tuple(checks), chain, (*doubt, *mine))


def check_name(framework: str) -> None:
    """Raise WrongInput unless ctk has a check of that name."""
    known = (AUTO, NONE, *checkable())
    if framework not in known:
        raise WrongInput(
            f"ctk has no check of the framework {framework!r}.{did_you_mean(framework, known)}",
            fix=f"--framework takes one of: {', '.join(known)}.",
        )


def _read(image: Path) -> tuple[ImageFacts | None, tuple[Finding, ...]]:
    try:
        with open_image(image) as rootfs:
            return gather_image_facts(rootfs), ()
    except CtkError as problem:
        fix = problem.fix or "Name the framework: --framework NAME."
        message = f"The image's file could not be audited, so that no framework was checked: {problem.message}"
        return None, (warning("image-not-audited", message, fix),)


def _targets(seen: Seen) -> list[TargetMachine]:
    """The machines to audit for: one for each type of GPU that the driver showed."""
    machine = replace(this_machine(), driver=_driver_version(seen))
    types = dict.fromkeys((device.name, device.capability) for device in seen.probe.devices if device.capability)
    return [replace(machine, gpu=name, capability=capability) for name, capability in types] or [machine]


def _driver_version(seen: Seen) -> str | None:
    """NVIDIA's driver, as NVML says it, else the host; None if it is not the version of a driver."""
    version = seen.probe.driver or seen.host.driver
    try:
        return version if version and parse_driver(version) else None
    except WrongInput:
        return None


def _subjects(audit: Audit | None, framework: str) -> list[tuple[str, Subject]]:
    """The frameworks to check, by the names of their checks: of the default Python, those with a GPU build."""
    audited = audit.frameworks if audit else ()
    if framework not in (AUTO, NONE):
        known = next((found for found in knowledge().frameworks if found.name == framework), None)
        own = [found for found in audited if found.facts.name == framework]
        own.sort(key=lambda found: not found.facts.by_default)
        return [(framework, Subject(known.title if known else framework, audit=own[0] if own else None))]
    names = checkable()
    defaults = [found for found in audited if found.facts.by_default and found.facts.name in names]
    with_gpu = [found for found in defaults if found.verdict is not Verdict.CPU_ONLY]
    return [(found.facts.name, _subject(found)) for found in with_gpu or defaults]


def _subject(found: FrameworkAudit) -> Subject:
    return Subject(found.facts.title, audit=found)


def _of_interest(audit: Audit | None) -> tuple[list[str], list[str]]:
    """The modules that ~/.local must not have, and the variables by which these frameworks choose a device."""
    frameworks = [found.facts.known for found in audit.frameworks] if audit else []
    modules = [*(known.module for known in frameworks), *(["numpy"] if frameworks else [])]
    return modules, [name for known in frameworks if known.platform for name in known.platform.variables]
