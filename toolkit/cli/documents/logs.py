"""Documents about logs of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.gpu.logs.judge import Judgement
    from toolkit.gpu.logs.notes import Sighting
    from toolkit.gpu.logs.reader import Log


def log_check(log: Path, seen: Log, result: Judgement) -> dict[str, Any]:
    """On which device the program of a log computed, with the lines that prove it."""
    return {
        "verdict": result.verdict,
        "log": str(log),
        "lines": seen.lines,
        "size_bytes": seen.size,
        "evidence": [_line(sighting) for sighting in result.evidence],
    }


def _line(sighting: Sighting) -> dict[str, Any]:
    return {
        "line": sighting.first,
        "last_line": sighting.last,
        "count": sighting.count,
        "rank": sighting.rank,
        "kind": sighting.pattern.kind,
        "framework": sighting.pattern.framework,
        "meaning": sighting.meaning,
        "text": redact(sighting.text),
    }
