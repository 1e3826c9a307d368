"""The catalogue of codes: what each finding, verdict and exit status means, and what to do about it.

Each package has the entries of the codes that it reports in `codes/*.toml`, next to its rules. This module joins them;
`ctk explain` and docs/findings.md are generated from them, and a test compares them with the code.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.support.errors import WrongInput
from toolkit.support.findings import Severity
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROOMS = Path(__file__).parent.parent
_MAX_NEAR = 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one code means. `severities` are those that a finding of this code can have; empty for other codes.

    `meaning` is Markdown, its first paragraph a summary; `remedy` is None if there is nothing to do. `source` says
    where the fact comes from: a document, an upstream file, or what ctk examines.
    """

    code: str
    section: str
    severities: tuple[Severity, ...]
    meaning: str
    remedy: str | None
    source: str

    @property
    def summary(self) -> str:
        """The first paragraph of the meaning, in one line."""
        return " ".join(self.meaning.partition("\n\n")[0].split())

    def as_json(self) -> dict[str, Any]:
        """The form of `ctk explain --json`."""
        return {
            "code": self.code,
            "section": self.section,
            "severity": [severity.value for severity in self.severities],
            "meaning": self.meaning,
            "remedy": self.remedy,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Section:
    """The codes of one subject, which are shown together; `intro` is Markdown, or empty."""

    title: str
    order: int
    intro: str
    explanations: tuple[Explanation, ...]


def sections() -> tuple[Section, ...]:
    """The full catalogue, in the order in which it is shown."""
    return tuple(sorted(map(_section, _ROOMS.glob("*/codes/*.toml")), key=lambda section: section.order))


def explanation(code: str) -> Explanation:
    """The entry of one code; an exit status can also be given as a number. Raises WrongInput for an unknown code."""
    known = explanations()
    wanted = f"exit-{code}" if code.isdecimal() else code
    if wanted not in known:
        raise WrongInput(
            f"unknown code {code!r}.{_near(wanted, known)}", fix="`ctk explain` without a code lists them all."
        )
    return known[wanted]


def explanations() -> dict[str, Explanation]:
    """Every entry of the catalogue by its code."""
    return {found.code: found for section in sections() for found in section.explanations}


def _near(word: str, known: Iterable[str]) -> str:
    """' Did you mean "a" or "b"?' with its leading space, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=_MAX_NEAR)
    return " Did you mean " + " or ".join(f'"{code}"' for code in near) + "?" if near else ""


def _section(path: Path) -> Section:
    content = parse_toml(path.read_text(encoding="utf-8"))
    title = content["title"]
    entries = ((code, entry) for code, entry in content.items() if isinstance(entry, dict))
    explanations = tuple(_explanation(code, title, entry) for code, entry in entries)
    return Section(title, content["order"], content.get("intro", "").strip(), explanations)


def _explanation(code: str, section: str, entry: dict[str, Any]) -> Explanation:
    return Explanation(
        code=code,
        section=section,
        severities=tuple(map(Severity, entry.get("severity", ()))),
        meaning=entry["meaning"].strip(),
        remedy=_in_one_line(entry.get("remedy")),
        source=entry["source"],
    )


def _in_one_line(text: str | None) -> str | None:
    return " ".join(text.split()) if text else None
