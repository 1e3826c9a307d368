"""A finding: one fact that was established, how grave it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """How grave a finding is, gravest first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact. `code` is kebab-case and never changes its meaning; `fix` is what to do next, or None."""

    code: str
    severity: Severity
    message: str
    fix: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """The form that every `--json` document carries."""
        return {"code": self.code, "severity": self.severity.value, "message": self.message, "fix": self.fix}
