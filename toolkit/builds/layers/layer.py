"""What a step of a build changed, as one squashfs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layer:
    """A squashfs at `path` of `size` bytes; `name` is `ctk-layer-HASH`, `digest` its `sha256:…` if that is known."""

    path: Path
    name: str
    size: int
    digest: str | None = None
