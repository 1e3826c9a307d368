"""Options of a scheduler's own program and of the runtime are answered with those of ctk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["sbatch", "-J", "x", "-w", "node7", "--dry-run", "python"], "Instead: --directive=--nodelist=NODES"),
        (["sbatch", "--wrap", "python train.py"], "Instead: --shell 'LINE'"),
        (["sbatch", "--mail-user=ann@site.example", "python"], "Instead: --directive=--mail-user=NAME@SITE"),
        (["script", "-p", "gpu", "python"], "Instead: --partition NAME"),
        (["sbatch", "--gres=gpu:1", "python"], "Instead: --gpus N or --gpus TYPE:N"),
        (["qsub", "-l", "h_rt=1", "python"], "Instead: --gpus N, --time LIMIT"),
        (["qsub", "-pe", "smp", "4", "python"], "--request '-pe NAME {slots}'"),
        (["script", "-N", "2", "python"], "Instead: --nodes N"),
        (["script", "--foo", "python"], "`ctk script --help` shows the usage."),
        (["run", "--env", "A=b", "x.sif", "env"], "Instead: export NAME=VALUE before the command"),
        (["run", "--nv", "x.sif", "python"], "Instead: omit it: the container gets the GPUs"),
        (["run", "-p", "x.sif", "python"], "`ctk run --help` shows the usage."),
    ],
)
def test_option_of_another_program_names_that_of_ctk(ctk: Ctk, words: list[str], instead: str) -> None:
    refused = ctk(*words, status=2).stderr
    assert "No such option: -" in refused
    assert instead in refused
