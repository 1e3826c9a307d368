"""Findings, and rules that are applied in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity, apply_rules

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_finding_without_a_fix_has_the_key_all_the_same() -> None:
    assert Finding("clock", Severity.OK, "The clock is right.").as_json() == {
        "code": "clock",
        "severity": "ok",
        "message": "The clock is right.",
        "fix": None,
    }


def test_rules_give_their_findings_in_their_order() -> None:
    def twice(facts: str) -> Iterator[Finding]:
        yield Finding("clock", Severity.OK, f"first {facts}")
        yield Finding("clock", Severity.OK, f"second {facts}")

    def never(_facts: str) -> Iterator[Finding]:
        yield from ()

    found = apply_rules((never, twice, never, twice), "fact")
    assert [finding.message for finding in found] == ["first fact", "second fact"] * 2
