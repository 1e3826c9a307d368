"""What the environment leaves open decides no verdict alone: errors that rest on it become warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.facts import ImageFacts

# Errors that a folder of LD_LIBRARY_PATH that is not known would cure, and those that a folder causes which may not be
# in it when the image runs.
_LACKING = frozenset(
    {
        *("missing-cuda-library", "wrong-cuda-library", "cuda-library-off-path"),
        *("missing-library", "cuda-libraries-disagree", "cudnn-too-old"),
    }
)
_IN_THE_WAY = frozenset({"stub-libcuda-first", "compat-libcuda-first"})
DOUBTFUL = _LACKING | _IN_THE_WAY


def weighed(findings: Iterable[Finding], facts: ImageFacts) -> tuple[Finding, ...]:
    """The findings, of which those that an uncertain LD_LIBRARY_PATH may make untrue are no errors."""
    doubt = next((one for one in facts.inventory.uncertain if one.name == "LD_LIBRARY_PATH"), None)
    if doubt is None:
        return tuple(findings)
    doubtful = DOUBTFUL if doubt.open else _IN_THE_WAY
    reason = f" That may not be so: what {doubt.script} makes of LD_LIBRARY_PATH is known only when it runs."
    return tuple(
        replace(one, severity=Severity.WARNING, message=one.message + reason)
        if one.severity is Severity.ERROR and one.code in doubtful
        else one
        for one in findings
    )
