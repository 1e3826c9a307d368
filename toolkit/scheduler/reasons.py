"""Plain words for a scheduler's own reasons, from reasons.toml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from toolkit.support.tomlfile import read_toml


def reason_words(scheduler: str, reason: str) -> str:
    """What `reason` of `scheduler` (a table of reasons.toml) means; empty for no reason, itself if it is unknown."""
    reason = reason.strip().strip("()")
    if reason in ("", "None", "0"):
        return ""
    words: dict[str, str] = _reasons()[scheduler]["words"]
    # Slurm writes `ReqNodeNotAvail, UnavailableNodes:n[1-3]` and `launch failed requeued held`.
    name, comma, detail = reason.partition(",")
    known = words.get(name) or words.get(name.replace(" ", "_"))
    if known is None:
        return reason
    return f"{known} ({detail.strip()})" if comma else known


def is_held(reason: str) -> bool:
    """Whether a reason of Slurm says that the job waits until somebody releases it."""
    held: list[str] = _reasons()["slurm"]["held"]
    return reason.strip("()").replace(" ", "_") in held


@cache
def _reasons() -> dict[str, Any]:
    return read_toml(Path(__file__).with_name("reasons.toml")).content
