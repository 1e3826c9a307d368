"""The audit: the facts of an image, read without running it, and the verdict."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.gpu.facts import FrameworkCase, ImageCase
from toolkit.gpu.gather import gather_image_facts
from toolkit.gpu.rules import FRAMEWORK_RULES, IMAGE_RULES
from toolkit.gpu.rules.doubts import doubted, weighed, without_doubtful
from toolkit.inventory.formats.images import open_image
from toolkit.support.findings import Severity, Verdict, apply_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from toolkit.gpu.facts import FrameworkFacts, ImageFacts, TargetMachine
    from toolkit.support.findings import Finding

_ORDER = list(Severity)


_BEST_FIRST = (Verdict.GPU_READY, Verdict.GPU_BROKEN, Verdict.CPU_ONLY, Verdict.NO_FRAMEWORK)


@dataclass(frozen=True, slots=True)
class FrameworkAudit:
    """One framework's verdict and the findings that are its own."""

    facts: FrameworkFacts
    verdict: Verdict
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The verdicts of the image and of each framework, and all findings, most severe first."""

    facts: ImageFacts
    verdict: Verdict
    frameworks: tuple[FrameworkAudit, ...]
    findings: tuple[Finding, ...]


def audit_image(path: Path, *targets: TargetMachine, command: Sequence[str] = ()) -> Audit:
    """Open and read the image at `path`, and judge it for one machine or several. Raises WrongInput if unreadable.

    For several, a verdict is the worst one, and what is found for each of them is said once. `command` is what a job
    runs in the image.
    """
    with open_image(path) as rootfs:
        facts = gather_image_facts(rootfs, command)
    return judge_for(facts, *targets)


def judge_for(facts: ImageFacts, *targets: TargetMachine) -> Audit:
    """Judge an image for one machine or several; for several, a verdict is the worst one."""
    audits = [judge_image(facts, target) for target in targets]
    return audits[0] if len(audits) == 1 else _together(audits)


def _together(audits: Sequence[Audit]) -> Audit:
    frameworks = tuple(
        FrameworkAudit(judged[0].facts, _worst(judged), _each_once(found.findings for found in judged))
        for judged in zip(*(audit.frameworks for audit in audits), strict=True)
    )
    findings = sorted(_each_once(audit.findings for audit in audits), key=lambda found: _ORDER.index(found.severity))
    return Audit(audits[0].facts, _worst(audits), frameworks, tuple(findings))


def _each_once(groups: Iterable[Iterable[Finding]]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(finding for group in groups for finding in group))


def judge_image(facts: ImageFacts, target: TargetMachine) -> Audit:
    """Apply every rule. An error of the image as a whole breaks each GPU build in it."""
    whole = weighed(apply_rules(IMAGE_RULES, ImageCase(facts, target)), facts)
    broken = any(finding.severity is Severity.ERROR for finding in whole)
    frameworks = tuple(_judge_framework(framework, facts, target, broken=broken) for framework in facts.frameworks)
    verdict = _overall(frameworks, facts)
    findings = [*(finding for framework in frameworks for finding in framework.findings), *whole]
    return Audit(facts, verdict, frameworks, tuple(sorted(findings, key=lambda found: _ORDER.index(found.severity))))


def _judge_framework(
    framework: FrameworkFacts, facts: ImageFacts, target: TargetMachine, *, broken: bool
) -> FrameworkAudit:
    findings = weighed(apply_rules(FRAMEWORK_RULES, FrameworkCase(framework, facts, target)), facts)
    sure = without_doubtful(framework, facts)
    if sure is not framework:
        certain = set(apply_rules(FRAMEWORK_RULES, FrameworkCase(sure, facts, target))) if sure else set()
        doubt = facts.inventory.doubt("PYTHONPATH")
        findings = tuple(found if found in certain else doubted(found, doubt) for found in findings)
    failed = broken or any(finding.severity is Severity.ERROR for finding in findings)
    promised = framework.build.gpu or not framework.build.complete or _gpu_variant_beside(framework)
    verdict = Verdict.CPU_ONLY if not promised else Verdict.GPU_BROKEN if failed else Verdict.GPU_READY
    return FrameworkAudit(framework, verdict, findings)


def _gpu_variant_beside(judged: FrameworkFacts) -> bool:
    """Whether a GPU variant is installed with the CPU variant that an import loads."""
    names = {variant.name for variant in judged.variants}
    return len(names) > 1 and not all(map(judged.known.is_cpu_only, names))


def _overall(frameworks: tuple[FrameworkAudit, ...], facts: ImageFacts) -> Verdict:
    """The worst verdict of the GPU builds of the Python that the image runs by default; else whether it has any.

    Frameworks of other Pythons count only if that Python has none. Where it depends on a branch which Python that is,
    none of those that it may be makes the verdict worse than the others do. If nothing tells it (`conda activate`), a
    Python without GPU build does not decide.
    """
    possible = _possible_defaults(facts)
    own = [[framework for framework in frameworks if framework.facts.interpreter == path] for path in possible]
    verdicts = [_worst(group) for group in own if group] or [_worst(frameworks)]
    verdict, doubt = min(verdicts, key=_BEST_FIRST.index), facts.inventory.doubt("PATH")
    unknown = facts.program is None and doubt is not None and doubt.open
    return _worst(frameworks) if unknown and verdict is Verdict.CPU_ONLY else verdict


def _worst(audits: Iterable[FrameworkAudit | Audit]) -> Verdict:
    verdicts = {audit.verdict for audit in audits}
    worst_first = (Verdict.GPU_BROKEN, Verdict.GPU_READY, Verdict.CPU_ONLY)
    return next((verdict for verdict in worst_first if verdict in verdicts), Verdict.NO_FRAMEWORK)


def _possible_defaults(facts: ImageFacts) -> list[str]:
    """The possible interpreters for `python`: several only if running the image decides the order of PATH."""
    if facts.program is not None:
        return [facts.program]
    doubt = facts.inventory.doubt("PATH")
    in_path = facts.inventory.variable("PATH").split(":") if doubt and not doubt.open else ()
    return [
        interpreter.path
        for interpreter in facts.inventory.interpreters
        if interpreter.default or posixpath.dirname(interpreter.path) in in_path
    ]
