"""The corpus of real log lines in `tests/data/logs`, and what a log in bytes is judged to be."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.gpu.logs.judge import Judgement, judge_log
from toolkit.gpu.logs.reader import read_log
from toolkit.support.findings import Severity
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = Path(__file__).parents[2] / "data" / "logs"


@dataclass(frozen=True)
class Case:
    """A few lines of a real log, where they are from, and what they say."""

    file: str
    source: str
    verdict: str
    cause: str | None
    network: str | None
    log: str


def _cases() -> Iterator[Case]:
    for path in sorted(DIRECTORY.glob("*.toml")):
        for row in parse_toml(path.read_text(encoding="utf-8"))["case"]:
            yield Case(path.stem, row["source"], row["verdict"], row.get("cause"), row.get("network"), row["log"])


CASES = tuple(_cases())


@lru_cache(maxsize=4096)
def judged(log: str | bytes) -> Judgement:
    content = log.encode() if isinstance(log, str) else log
    return judge_log(read_log(io.BytesIO(content)))


def causes(judgement: Judgement) -> set[str]:
    return {found.code for found in judgement.findings if found.severity is Severity.ERROR}
