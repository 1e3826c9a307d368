"""An uncertain environment does not decide a verdict: errors that depend on it become warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.facts import FrameworkFacts, ImageFacts
    from toolkit.inventory.contents.model import Uncertain

# Errors that a directory of LD_LIBRARY_PATH that is not known would cure.
_LACKING = frozenset(
    {
        *("missing-cuda-library", "wrong-cuda-library", "cuda-library-off-path"),
        *("missing-library", "cuda-libraries-disagree", "cudnn-too-old"),
    }
)


def doubted(finding: Finding, doubt: Uncertain | None) -> Finding:
    """A warning instead of an error if the variable that causes it is uncertain."""
    if doubt is None or finding.severity is not Severity.ERROR:
        return finding
    reason = f" This is uncertain: {doubt.script} sets {doubt.name} at run time."
    return replace(finding, severity=Severity.WARNING, message=finding.message + reason)


def weighed(findings: Iterable[Finding], facts: ImageFacts) -> tuple[Finding, ...]:
    """The findings, of which those that an unknown part of LD_LIBRARY_PATH may make untrue are no errors."""
    doubt = facts.inventory.doubt("LD_LIBRARY_PATH")
    if doubt is None or not doubt.open:
        return tuple(findings)
    return tuple(doubted(finding, doubt) if finding.code in _LACKING else finding for finding in findings)


def without_doubtful(framework: FrameworkFacts, facts: ImageFacts) -> FrameworkFacts | None:
    """The framework as it is without the directories of an uncertain PYTHONPATH; None if it is in one itself."""
    if facts.inventory.doubt("PYTHONPATH") is None:
        return framework
    doubtful = set(facts.inventory.variable("PYTHONPATH").split(":"))
    if framework.distribution.directory in doubtful:
        return None
    seen = {name: companion for name, companion in framework.companions.items() if companion.directory not in doubtful}
    return framework if len(seen) == len(framework.companions) else replace(framework, companions=seen)
