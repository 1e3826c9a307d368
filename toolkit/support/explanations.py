"""The catalogue of codes: what each finding, verdict and exit status means, and what to do about it.

Each package has the entries of the codes that it reports in `codes/*.toml`, next to its rules. This module joins them;
`ctk explain` and docs/findings.md are generated from them, and a test compares them with the code.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.support.errors import WrongInput
from toolkit.support.findings import Severity
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ROOMS = Path(__file__).parent.parent
_MESSAGES = Path(__file__).parent / "codes/messages.toml"
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
    if (found := find_explanation(code)) is not None:
        return found
    raise WrongInput(
        f"unknown code {code!r}.{_near(code, explanations())}", fix="`ctk explain` without a code lists them all."
    )


def find_explanation(text: str) -> Explanation | None:
    """The entry of a code, of an exit status as a number, or of a line of another program; None for another text.

    A line of ctk names its code in brackets.
    """
    known = explanations()
    text = text.strip()
    named = [text, f"exit-{text}", *re.findall(r"\[([a-z0-9-]{1,60})\]", text)]
    code = next((code for code in named if code in known), None)
    if code is None:
        codes = (code for pattern, code in _messages() if pattern.search(text))
        code = next(codes, None)
    return known[code] if code else None


@cache
def _messages() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of messages of other programs, each with the code whose entry explains it."""
    content = parse_toml(_MESSAGES.read_text(encoding="utf-8"))
    entries = [(code, entry) for code, entry in content.items() if isinstance(entry, dict)]
    entries += [(entry["code"], entry) for entry in content["known"]]
    return tuple((re.compile(pattern), code) for code, entry in entries for pattern in entry["messages"])


@cache
def explanations() -> Mapping[str, Explanation]:
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
