"""Sets of released wheels: `tests/data/wheel_sets.toml` says what the audit must say of each.

The wheels lie in `tests/data/wheel_sets.json.gz`, reduced to what the audit reads; `python -m tests.real.wheel_sets`
makes that file from the index.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.real.wheels import elf

if TYPE_CHECKING:
    from collections.abc import Iterable

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

DATA = Path(__file__).resolve().parents[1] / "data"
REDUCED = DATA / "wheel_sets.json.gz"


@dataclass(frozen=True)
class WheelSet:
    """One row of `wheel_sets.toml`, whose head explains the fields."""

    wheels: str
    python: str
    dependencies: bool = False
    cuda: str = ""
    cudnn: str = ""
    built: str | None = None
    runs_on: tuple[str, ...] = ()
    not_on: tuple[str, ...] = ()
    verdict: str = "gpu-ready"
    codes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What decides which wheels are installed."""
        return f"{self.wheels} on {self.python}{' with dependencies' if self.dependencies else ''}"

    def __str__(self) -> str:
        return f"{self.wheels} {f'CUDA {self.cuda}' if self.cuda else ''}".strip()


@dataclass(frozen=True)
class Kept:
    """Patterns of the files of a wheel that are kept: word for word, and as what the loader sees of them."""

    texts: tuple[str, ...]
    libraries: tuple[str, ...]


@dataclass(frozen=True)
class ReducedWheel:
    """What is left of a wheel: texts by path, and shared libraries by path with their dynamic sections, if read."""

    url: str
    texts: dict[str, str]
    libraries: dict[str, dict[str, Any] | None]

    def files(self) -> dict[str, str | bytes]:
        """The files that installing it brings."""
        return {
            **self.texts,
            **{path: elf(**one) if one else b"not looked into" for path, one in self.libraries.items()},
        }


def kept() -> Kept:
    """What is kept of a wheel."""
    tables = _table()["kept"]
    return Kept(*(tuple(one for table in tables for one in table[key]) for key in ("texts", "libraries")))


def wheel_sets() -> list[WheelSet]:
    """All rows, in the order of the file."""
    groups = _table()["group"]
    return [
        WheelSet(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})
        for group in groups
        for row in group["sets"]
    ]


def _table() -> dict[str, Any]:
    return tomllib.loads((DATA / "wheel_sets.toml").read_text())


@cache
def reduced() -> tuple[dict[str, list[str]], dict[str, ReducedWheel]]:
    """The file names of the wheels of each set by its key, and the wheels by file name."""
    content = json.loads(gzip.decompress(REDUCED.read_bytes()))
    return content["sets"], {name: ReducedWheel(**one) for name, one in content["wheels"].items()}


def write(sets: dict[str, list[str]], wheels: Iterable[tuple[str, ReducedWheel]]) -> None:
    """Write the file, the same for the same content."""
    content = {"sets": sets, "wheels": {name: vars(one) for name, one in wheels}}
    REDUCED.write_bytes(gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0))
