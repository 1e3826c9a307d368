"""`ctk check-gpu`: ask the host, the driver inside the image and its frameworks, and judge the chain."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.gpu.framework_check import check_framework, checkable
from toolkit.gpu.host import any_gpu
from toolkit.gpu.links.model import Seen
from toolkit.gpu.probe import probing
from toolkit.gpu.user_environment import judge_environment, user_environment
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.errors import WrongInput
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.gpu.chain import Chain
    from toolkit.gpu.framework_check import FrameworkCheck
    from toolkit.runtime.engine import Runtime
    from toolkit.support.findings import Finding

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
    meanwhile: Callable[[], None] = lambda: None,
) -> Checked:
    """Check one image on this host; `timeout` seconds for each step in a container.

    `meanwhile` is called while the container starts: if it raises, the container is ended.

    The image's file is audited while the driver is asked; then the frameworks that the audit names, or the one that
    `framework` does, compute. Raises WrongInput for a framework that ctk cannot check, ProgramFailed if the container
    does not start.
    """
    check_name(framework)
    host = any_gpu()
    on_step("the driver")
    with probing(runtime, image, host.vendor) as wait:
        # What reads and judges an image takes a tenth of a second to load: meanwhile the container starts.
        meanwhile()
        from toolkit.gpu.chain import driver_links, whole_chain
        from toolkit.gpu.subjects import audit_for, modules_and_variables, read_facts, subjects_of

        facts, doubt = read_facts(image)
        probe = wait(timeout)
    seen = Seen(host, probe)
    audit = audit_for(facts, seen) if facts else None
    begun = driver_links(seen, audit)
    subjects = subjects_of(audit, None if framework in (AUTO, NONE) else framework)
    checks: list[FrameworkCheck] = []
    if begun.verdict is GpuVerdict.VISIBLE and framework != NONE:
        for number, subject in enumerate(subjects):
            on_step(subject.title)
            path = subject.audit.facts.interpreter if subject.audit else ""
            check = check_framework(runtime, image, subject.name, vendor=host.vendor, interpreter=path, timeout=timeout)
            checks.append(check)
            subjects[number] = replace(subject, check=check, visible=len(probe.devices))
    chain = whole_chain(begun, subjects)
    mine = judge_environment(user_environment(os.environ, Path.home(), *modules_and_variables(audit)))
    return Checked(seen, tuple(checks), chain, (*doubt, *mine))


def check_name(framework: str) -> None:
    """Raise WrongInput unless ctk has a check of that name."""
    known = (AUTO, NONE, *checkable())
    if framework not in known:
        raise WrongInput(
            f"ctk has no check of the framework {framework!r}.{did_you_mean(framework, known)}",
            fix=f"--framework takes one of: {', '.join(known)}.",
        )
