"""`ctk` without a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk


def test_bare_ctk_says_what_is_here_and_what_comes_next(ctk: Ctk) -> None:
    assert "Images here: none" in ctk().stdout
    assert "Next: ctk build keras-bert" in ctk().stdout
    (ctk.directory / "x.sif").touch()
    assert "Next: ctk check-gpu x.sif" in ctk().stdout
    (ctk.directory / "x.sbatch").touch()
    assert "Next: sbatch x.sbatch" in ctk().stdout
