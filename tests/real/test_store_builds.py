"""Real builds that share a store at once, and builds while the store is pruned: a share of `make soak`, fixed seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faulty_registry import faulty_registry
from tests.soak.builds import Way, layer, reference_of, together

if TYPE_CHECKING:
    from pathlib import Path

SEED = 7


def test_two_processes_without_locks_on_two_hosts_build_the_images_of_one(tmp_path: Path) -> None:
    with faulty_registry(layer()) as registry:
        reference = reference_of(tmp_path / "reference", registry, 3)
        together(tmp_path / "round", Way(locks=False, one_host=False), SEED, registry, reference)
