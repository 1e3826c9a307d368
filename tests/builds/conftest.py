"""A working directory for builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.store import keeping

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with one of everything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "defs").mkdir()
    (tmp_path / "defs/mine.toml").write_text('base = "debian-12"\n')
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    (tmp_path / "k.def").write_text("Bootstrap: docker\nFrom: x\n")
    (tmp_path / "empty.def").write_text("\n")
    (tmp_path / "text.def").write_text("%post\n    echo Bootstrap: x\n")
    (tmp_path / "sb/.singularity.d").mkdir(parents=True)
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory/thesis.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "base.sif").write_bytes(b"hsqs".ljust(1000))
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests used of their stores is gone, and no reason to build again."""
    monkeypatch.setattr(keeping, "_used", {})
