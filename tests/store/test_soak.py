"""A share of `make soak`, with a fixed seed: several processes, kills and full disks, and a store that stays whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.soak.store import WAYS, Way, killed, on_small_disk, together
from toolkit.store import digests

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SEED = 7


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of a file that was just written is used."""
    monkeypatch.setattr(digests, "_SETTLED_NS", 0)


@pytest.mark.parametrize("prunes", [False, True], ids=["", "pruning"])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_two_processes_with_one_store(tmp_path: Path, way: Way, prunes: bool) -> None:
    for number in range(2):
        together(tmp_path, Way(way.locks, way.one_host, prunes), SEED + number, actions=40)


def test_kills_at_random_moments(tmp_path: Path) -> None:
    for number in range(10):
        killed(tmp_path, SEED + number)


@pytest.mark.programs  # unshare and mount, which `make check` need not have
def test_full_disks_at_random_moments(tmp_path: Path) -> None:
    on_small_disk(tmp_path, SEED, 5)
