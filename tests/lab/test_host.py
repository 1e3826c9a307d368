"""What a lab asks of its host: programs, ports, GPUs, modules, and no real cluster."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from toolkit.lab import foreign, requirements
from toolkit.lab.foreign import cluster_name, foreign_cluster
from toolkit.lab.gpus import real_gpus
from toolkit.lab.modules import Software, modulefile, recognise
from toolkit.lab.ports import choose_ports, is_free
from toolkit.lab.requirements import find_programs, install_advice
from toolkit.support.errors import MissingOnHost


@pytest.mark.parametrize(
    ("os_release", "command"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "apt-get install slurmctld slurmd slurm-client munge"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "apt-get install slurmctld slurmd slurm-client munge"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install epel-release && dnf install"),
        ("ID=fedora\n", "dnf install slurm-slurmctld"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper install"),
        ("ID=plan9\n", "your distribution's packages"),
        ("", "your distribution's packages"),
    ],
)
def test_the_advice_names_the_packages_of_the_distribution(os_release: str, command: str) -> None:
    assert command in install_advice(os_release)
    assert "\n" not in install_advice(os_release)


def test_all_missing_programs_are_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "srun").touch(mode=0o755)
    monkeypatch.setattr(requirements, "search_path", lambda: str(tmp_path))
    with pytest.raises(
        MissingOnHost,
        match=r"missing on this host: munged, slurmctld, slurmd, scontrol, sinfo, squeue, sbatch, scancel$",
    ):
        find_programs()


def test_a_port_is_in_use_while_a_program_listens() -> None:
    first = choose_ports(3)
    assert all(is_free(port) for port in range(first, first + 3))
    with socket.socket() as other:
        other.bind(("0.0.0.0", first + 1))  # noqa: S104 - every address, as daemons do
        other.listen()
        with pytest.raises(
            MissingOnHost, match=rf"port {first + 1} is in use by .* \(process \d+\); .* ports {first} to"
        ):
            choose_ports(3, wanted=first)
        assert choose_ports(1, wanted=first) == first
    assert choose_ports(3, wanted=first) == first


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


def test_gpus_are_devices_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    with pytest.raises(MissingOnHost, match="this machine has no GPU"):
        real_gpus(tmp_path)
    for name in ("nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).symlink_to("/dev/null")
    (tmp_path / "nvidia1").touch()
    assert real_gpus(tmp_path) == tuple(f"{tmp_path}/nvidia{number}" for number in (0, 2, 10))


@pytest.mark.parametrize(
    ("words", "software"),
    [
        ("apptainer version 1.4.5\n", Software("apptainer", "1.4.5")),
        ("singularity-ce version 3.11.4-rc.1\n", Software("singularity", "3.11.4-rc.1")),
        ("singularity version 3.8.7-1.el8\n", Software("singularity", "3.8.7-1.el8")),
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n", Software("openmpi", "4.1.4")),
        ("HYDRA build details:\n    Version:                                 4.0.2\n", Software("mpich", "4.0.2")),
        ("something else 1.0", None),
        ("", None),
    ],
)
def test_software_is_recognised_by_its_version_output(words: str, software: Software | None) -> None:
    assert recognise(words) == software


def test_a_modulefile() -> None:
    assert modulefile(Software("apptainer", "1.4.5"), Path("/lab/bin")) == (
        "#%Module1.0\n"
        'module-whatis "apptainer 1.4.5, as installed on this machine"\n'
        "conflict apptainer\n"
        "prepend-path PATH /lab/bin\n"
    )
