"""The typed form of `in_use.toml`: distributions that can be imported beside another one, and fail in use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FILE = Path(__file__).with_name("in_use.toml")


@dataclass(frozen=True, slots=True)
class FailsInUse:
    """`name` in `versions` beside `other`; `problem` ends a sentence that begins with both."""

    name: str
    versions: str
    other: str
    other_versions: str
    problem: str
    fix: str
    source: str


@cache
def fails_in_use() -> tuple[FailsInUse, ...]:
    """Read `in_use.toml` once."""
    return tuple(
        FailsInUse(
            name=row["name"],
            versions=row["versions"],
            other=row["with"],
            other_versions=row["with_versions"],
            problem=row["problem"],
            fix=row["fix"],
            source=row["source"],
        )
        for row in read_toml(_FILE).content["pair"]
    )


def failing_in_use(versions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The problem and its fix, as sentences, for each pair of these distributions (versions by name)."""
    for rule in fails_in_use():
        version, other = versions.get(rule.name), versions.get(rule.other)
        if version is None or other is None:
            continue
        if satisfies(version, rule.versions) and satisfies(other, rule.other_versions):
            beside = f"{rule.name} {version} can be imported beside {rule.other} {other}"
            yield f"{beside}, but {rule.problem}", rule.fix
