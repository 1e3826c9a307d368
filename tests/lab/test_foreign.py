"""What a lab asks of its host: programs, ports, GPUs, modules, and no real cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.lab import foreign
from toolkit.lab.foreign import cluster_name, foreign_cluster

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ClusterName=alps\nSlurmctldHost=x", "alps"),
        (" clustername = alps # ours", "alps"),
        ("ClusterName             = alps\n", "alps"),
        ("#ClusterName=old\nSlurmctldHost=x", "unnamed"),
        ("ClusterName=ctk-lab", None),
    ],
)
def test_the_name_of_a_cluster(text: str, name: str | None) -> None:
    assert cluster_name(text) == name


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without any scheduler's configuration."""
    for variable in ("SLURM_CONF", "SGE_ROOT", "SGE_CELL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    monkeypatch.setattr(foreign, "_SLURM", (str(tmp_path / "slurm.conf"),))
    monkeypatch.setattr(foreign, "_GRID_ENGINE", str(tmp_path / "act_qmaster"))
    monkeypatch.setattr(foreign, "_TORQUE", (str(tmp_path / "server_name"),))
    return tmp_path


def test_a_host_without_a_scheduler_is_no_cluster(bare_host: Path) -> None:
    assert foreign_cluster() is None


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("slurm.conf", "ClusterName=alps\n", 'Slurm cluster "alps"'),
        ("act_qmaster", "head.example\n", "Grid Engine"),
        ("act_qmaster", "localhost\n", None),
        ("act_qmaster", "\n", None),
        ("pbs.conf", "PBS_SERVER=head\n", "PBS"),
        ("pbs.conf", "# nothing\n", None),
        ("server_name", "head\n", "Torque"),
    ],
)
def test_a_configuration_shows_a_cluster(bare_host: Path, file: str, text: str, words: str | None) -> None:
    (bare_host / file).write_text(text)
    assert foreign_cluster() == (f"{words} ({bare_host / file})" if words else None)


def test_a_lab_in_use_hides_no_cluster_and_is_none(bare_host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare_host / "lab.conf").write_text("ClusterName=ctk-lab\n")
    monkeypatch.setenv("SLURM_CONF", str(bare_host / "lab.conf"))
    assert foreign_cluster() is None
    (bare_host / "slurm.conf").write_text("ClusterName=alps\n")
    assert foreign_cluster() == f'Slurm cluster "alps" ({bare_host / "slurm.conf"})'


@pytest.mark.parametrize(
    ("answer", "name"),
    [("ClusterName             = alps", 'Slurm cluster "alps" (scontrol show config)'), ("ClusterName = ctk-x", None)],
)
def test_the_slurm_client_reports_a_cluster_without_a_file(bare_host: Path, answer: str, name: str | None) -> None:
    (bare_host / "scontrol").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (bare_host / "scontrol").chmod(0o755)
    assert foreign_cluster() == name


def test_a_client_without_a_cluster(bare_host: Path) -> None:
    (bare_host / "scontrol").write_text("#!/bin/sh\necho ClusterName=alps\nexit 1\n")
    (bare_host / "scontrol").chmod(0o755)
    assert foreign_cluster() is None
