"""What the CUDA driver's answers mean: the data of `answers.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolkit.support.tomlfile import read_toml

_DATA = Path(__file__).with_name("answers.toml")
NO_DEVICE = 100
# Answers that only a kernel module gives: it was there, whatever the host's files show.
FROM_THE_KERNEL = frozenset({46, 802, 803, 804})


@dataclass(frozen=True, slots=True)
class Answer:
    """A CUresult: the finding's code, what it means, and what to do about it."""

    code: str
    meaning: str
    fix: str


_OTHER = Answer(
    code="cuda-init-failed",
    meaning="the driver failed to start",
    fix="Send the file of `ctk doctor --report FILE` to the site.",
)


def answer(number: int) -> Answer:
    """The meaning of a CUresult that is not 0."""
    return _answers().get(number, _OTHER)


@cache
def _answers() -> dict[int, Answer]:
    rows = read_toml(_DATA).content["answer"]
    return {row["number"]: Answer(row["code"], row["meaning"], row["fix"]) for row in rows}
