"""The page of findings, `docs/findings.md`, section by section."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolkit.support.errors import WrongInput
from toolkit.support.paths import shipped
from toolkit.support.text import did_you_mean

_SECTION = re.compile(r"^### `([a-z0-9-]+)`\n+(.+?)\n\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One finding's section: the first paragraph in one line, and the rest."""

    code: str
    summary: str
    text: str


def explanations() -> tuple[Explanation, ...]:
    """Every section, in the order of the page."""
    page = (shipped("docs") / "findings.md").read_text(encoding="utf-8")
    return tuple(
        Explanation(code, " ".join(summary.split()), text.strip()) for code, summary, text in _SECTION.findall(page)
    )


def explanation(code: str) -> Explanation:
    """The section of one code. Raises WrongInput for a code that no finding has."""
    known = {one.code: one for one in explanations()}
    if code not in known:
        raise WrongInput(
            f"no finding has the code {code!r}.{did_you_mean(code, known)}", fix="`ctk explain` alone lists them all."
        )
    return known[code]
