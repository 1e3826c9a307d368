"""Which language a job script is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.cli.schedulers import any_dialect, job_command, qsub_dialect
from toolkit.scheduler.programs import Scheduler
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory of PATH, empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SGE_ROOT", raising=False)
    return tmp_path


def add(directory: Path, name: str, prints: str = "") -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)


@pytest.mark.parametrize("named", list(Scheduler))
def test_named_scheduler_needs_no_program(programs: Path, named: Scheduler) -> None:
    assert not list(programs.iterdir())
    assert any_dialect(named).words.scheduler is named
    if named is not Scheduler.SLURM:
        assert qsub_dialect(named).words.scheduler is named


def test_host_without_a_scheduler_asks_for_its_name(programs: Path) -> None:
    for choose in (any_dialect, qsub_dialect):
        with pytest.raises(WrongInput) as caught:
            choose(None)
        assert "--scheduler" in (caught.value.fix or "")
    with pytest.raises(WrongInput, match="not for Slurm"):
        qsub_dialect(Scheduler.SLURM)


@pytest.mark.parametrize(
    ("names", "version", "found"),
    [
        (("qsub", "qconf"), "", Scheduler.GRID_ENGINE),
        (("qsub", "qstat"), "pbs_version = 23.06.06", Scheduler.OPENPBS),
        (("qsub", "qstat"), "Version: 6.1.2", Scheduler.TORQUE),
        (("qsub", "qconf", "sbatch"), "", Scheduler.GRID_ENGINE),
    ],
)
def test_qsub_of_the_host_decides(programs: Path, names: tuple[str, ...], version: str, found: Scheduler) -> None:
    for name in names:
        add(programs, name, version)
    assert qsub_dialect(None).words.scheduler is found
    assert any_dialect(None).words.scheduler is (Scheduler.SLURM if "sbatch" in names else found)


@pytest.mark.parametrize(
    ("names", "command"), [((), "sbatch"), (("qsub",), "qsub"), (("qsub", "sbatch"), "sbatch"), (("sbatch",), "sbatch")]
)
def test_next_command_is_that_of_the_host(
    programs: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], command: str
) -> None:
    monkeypatch.setenv("HOME", str(programs))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in names:
        add(programs, name)
    assert job_command() == command
    settings = programs / ".config/ctk/settings.toml"
    settings.parent.mkdir(parents=True)
    for cluster, chosen in (("tsubame4", "qsub"), ("lab", "sbatch"), ("no-such", command)):
        settings.write_text(f'cluster = "{cluster}"\n')
        assert job_command() == chosen
