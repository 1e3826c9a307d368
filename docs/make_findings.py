"""Write docs/findings.md from the catalogue of codes (`toolkit/*/codes/*.toml`): `python docs/make_findings.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.explanations import sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.support.explanations import Explanation

PAGE = Path(__file__).with_name("findings.md")
_INTRO = """\
# Findings, errors and exit statuses

Every finding and every error that ctk reports has a code, whose meaning never changes. In `--json` output, the code is
the key `code`. `ctk explain CODE` prints the entry for a code from this page; `ctk explain` without a code lists all
codes.

A finding has one of four severities: an **error** keeps something from working, a **warning** needs your attention, an
**info** is useful to know, and an **ok** means that a check passed. If an entry lists several severities, the message
says why it has this one.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _INTRO
    for section in sections():
        yield f"## {section.title}\n"
        if section.intro:
            yield f"{section.intro}\n"
        for found in section.explanations:
            yield f"### `{found.code}`\n"
            yield f"{found.meaning}\n"
            yield "".join(f"- {line}\n" for line in _facts(found))


def _facts(found: Explanation) -> Iterator[str]:
    if found.severities:
        yield f"Severity: {', '.join(severity.value for severity in found.severities)}"
    if found.remedy:
        yield f"Fix: {found.remedy}"
    yield f"Source: {found.source}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
