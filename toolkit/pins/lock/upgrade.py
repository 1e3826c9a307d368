"""What a new lock keeps from an earlier one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The packages of an earlier lock that may get other versions; with `everything` all, and the base's digest."""

    packages: frozenset[str] = frozenset()
    everything: bool = False

    def __bool__(self) -> bool:
        return self.everything or bool(self.packages)

    def keeps(self, name: str) -> bool:
        """Whether the locked version of a package stays where it can."""
        return not self.everything and name not in self.packages


NO_UPGRADE = Upgrade()
FULL_UPGRADE = Upgrade(everything=True)
