"""What is known against a base of the catalogue: that it does not work, or that one source alone states its digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.recipes.model import Evidence
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from toolkit.recipes.model import Base

OPTION = "--allow-broken-base"


def judge_record(base: Base, *, allow_broken: bool) -> tuple[Finding, ...]:
    """Findings for the user of a base. Raises WrongInput (`broken-base`) for a broken one, unless that is allowed."""
    findings = []
    if base.broken is not None:
        words = f"the base {base.name} does not work: {base.broken}"
        if not allow_broken:
            raise WrongInput(words, fix=f"Choose another one (`ctk bases`), or add {OPTION}.", code="broken-base")
        findings.append(Finding("broken-base", Severity.WARNING, words))
    if base.digest is not None and base.evidence is Evidence.SINGLE:
        words = f"the digest of the base {base.name} is not confirmed: one source states it"
        fix = f"`ctk bases check {base.name}` asks the registry."
        findings.append(Finding("unconfirmed-digest", Severity.INFO, words, fix))
    return tuple(findings)
