"""A finding: one fact, its severity, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from toolkit.support.enums import StrEnum


class Severity(StrEnum):
    """How severe a finding is, most severe first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    OK = "ok"


class Verdict(StrEnum):
    """The verdict of `ctk audit`. GPU_BROKEN: the image has a GPU build, but something prevents it from working."""

    GPU_READY = "gpu-ready"
    GPU_BROKEN = "gpu-broken"
    CPU_ONLY = "cpu-only"
    NO_FRAMEWORK = "no-framework"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact. `code` is kebab-case and never changes its meaning; `fix` is what to do next, or None.

    Each code has an entry in the catalogue (`toolkit.support.explanations`); a test fails for one without.
    """

    code: str
    severity: Severity
    message: str
    fix: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """The form that every `--json` document carries."""
        return {"code": self.code, "severity": self.severity.value, "message": self.message, "fix": self.fix}


_Facts = TypeVar("_Facts")
# A rule judges facts that were gathered before, and reads nothing itself. A package lists its rules in one tuple: a new
# rule is a function in that tuple, an entry in the package's `codes/`, and a test.
Rule: TypeAlias = Callable[[_Facts], Iterable[Finding]]


def apply_rules(rules: Iterable[Rule[_Facts]], facts: _Facts) -> tuple[Finding, ...]:
    """What the rules find, in their order."""
    return tuple(finding for rule in rules for finding in rule(facts))
