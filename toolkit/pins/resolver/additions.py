"""What a recipe adds to its lock: the index is asked only for that, and not for all that the lock has already.

uv fetches the page of each package again where an index does not say how long it may be kept, which takes longer than
anything else for a recipe of 60 packages. A version that is locked stays whatever its page says today.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.pins.index.asked import asked_lately, note_asked
from toolkit.pins.resolver.question import ask
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.resolver.question import Answer, Question


def ask_for_additions(uv: Uv, question: Question, earlier: Lock) -> Answer | None:
    """The answer where all of `earlier` stays; None if it need not stay, or the index was not asked for it lately.

    An answer that is not possible proves nothing: the index has to be asked for everything then.
    """
    versions = earlier.versions
    target, base = question.target, earlier.base
    now = (target.python, target.architecture, question.exclude_newer, question.indexes)
    if now != (base.python, base.architecture, earlier.exclude_newer, earlier.indexes):
        return None
    stays = {f"{name}=={version}" for name, version in versions.items()} <= set(question.constraints)
    has_address = any("@" in line for line in question.packages)
    if not stays or has_address or not asked_lately(uv, question.indexes, versions):
        return None
    more = tuple(line for line in question.packages if line not in earlier.asked)
    added: dict[str, str] = {}
    if more:
        try:
            alone = ask(uv, question.asking(more))
        except ProgramFailed:
            return None
        if not alone.possible:
            return None
        added = alone.installed
        note_asked(uv, question.indexes, added)
    try:
        answer = ask(uv, question, again=True)
    except ProgramFailed:
        return None
    return answer if _is_known(answer, versions, added) else replace(answer, proof="another package is required")


def _is_known(answer: Answer, locked: dict[str, str], added: dict[str, str]) -> bool:
    """Whether all of an answer is locked, or was just looked up."""
    return all(version in (locked.get(name), added.get(name)) for name, version in answer.installed.items())
