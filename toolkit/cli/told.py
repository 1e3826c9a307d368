"""Warnings that say what a recipe takes, not what is wrong: each is told once, by the first build."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolkit.support.findings import Finding

_DIRECTORY = "told"


def not_told(recipe: Path, findings: Iterable[Finding], area: Path) -> tuple[Finding, ...]:
    """Those of `findings` about the file `recipe` that no build of this user has told, noted in the work area `area`.

    The note is not in the project: what came with a clone must not hide a warning. Where nothing can be noted, they are
    told again.
    """
    new = []
    for finding in findings:
        text = "\0".join((str(recipe.absolute()), finding.code, finding.message))
        note = area / _DIRECTORY / hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
        if note.is_file():
            continue
        new.append(finding)
        with contextlib.suppress(OSError):
            note.parent.mkdir(mode=0o700, exist_ok=True)
            note.touch()
    return tuple(new)
