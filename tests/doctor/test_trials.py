"""What is tried on this host instead of assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.doctor.trials import try_disk

if TYPE_CHECKING:
    from pathlib import Path


def test_a_trial_of_a_disk_leaves_nothing(tmp_path: Path) -> None:
    assert try_disk(tmp_path / "to/be/made").problem is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert try_disk(tmp_path / "file").problem == f"{tmp_path}/file: Not a directory"
