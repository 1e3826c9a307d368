"""Programs that a lab needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.lab import requirements
from toolkit.lab.requirements import find_programs, install_advice
from toolkit.support.errors import MissingOnHost

if TYPE_CHECKING:
    from pathlib import Path


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
