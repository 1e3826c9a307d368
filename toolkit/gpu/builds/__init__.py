"""What each framework's files say of how it was built: one small reader a framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.gpu.loader import Loader
    from toolkit.inventory.contents.model import Distribution
    from toolkit.inventory.formats.rootfs import Rootfs


@dataclass(frozen=True, slots=True)
class Installed:
    """Where to look: the image, its loader, the framework's site directory, and what its interpreter sees by name."""

    rootfs: Rootfs
    loader: Loader
    directory: str
    distribution: Distribution
    visible: dict[str, Distribution]
