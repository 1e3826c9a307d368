"""The guard of a layered build: the differences that the guard inside a flat build finds, from the layers' trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.pins.lock.model import Lock


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the guard says: `lines` as they belong in the build's log; `passed` is False if they end the build."""

    passed: bool
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardedLayers:
    """The layers of a build over its base, as squashfs files, lowest first. A step that made no layer has no path."""

    apt: Path | None = None
    packages: Path | None = None
    tail: Path | None = None


def judge_base(lock: Lock, base: Path) -> Judgement:
    """Whether `base` is the one of the lock: to be asked before anything is installed."""
    raise NotImplementedError


def judge_layers(lock: Lock, base: Path, layers: GuardedLayers) -> Judgement:
    """Whether the layers change what the base protects. Only what they touch is read."""
    raise NotImplementedError
