"""`ctk` without a command."""

from __future__ import annotations

import os
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


def test_newest_script_is_the_next_one(ctk: Ctk) -> None:
    """The first by name may be an array that has run."""
    for age, name in enumerate(("new.sge", "array.sbatch", "old.sbatch")):
        (ctk.directory / name).touch()
        os.utime(ctk.directory / name, (10**9 - age, 10**9 - age))
    assert "Next: qsub new.sge" in ctk().stdout
    os.utime(ctk.directory / "old.sbatch", (10**9 + 1, 10**9 + 1))
    assert "Next: sbatch old.sbatch" in ctk().stdout
    assert "Job scripts here: array.sbatch, new.sge, old.sbatch" in ctk().stdout


def test_script_becomes_a_recipe_and_a_recipe_an_image(ctk: Ctk) -> None:
    (ctk.directory / "train.py").touch()
    (line,) = (line for line in ctk().stdout.splitlines() if line.startswith("Next: "))
    assert line.startswith("Next: ctk new ")
    assert line.endswith(" --from train.py")
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/mine.toml").write_text('base = "debian-12"\n')
    assert "Next: ctk build mine" in ctk().stdout
