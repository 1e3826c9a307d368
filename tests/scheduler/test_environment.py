"""Which variables reach Slurm's client programs when ctk runs them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.scheduler.environment import REACH_CLUSTER, clean_environment, is_slurm_variable
from toolkit.support.processes import command_line, run

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {
    "SLURM_TIME_FORMAT": "relative",
    "SLURM_CLUSTERS": "other",
    "SLURM_JOB_ID": "7",
    "SLURM_RESTART_COUNT": "5",
    "SLURMD_NODENAME": "n9",
    "SQUEUE_FORMAT": "%i",
    "SQUEUE_STATES": "PENDING",
    "SINFO_FORMAT": "%N",
    "SCONTROL_ALL": "1",
    "SBATCH_OUTPUT": "elsewhere.log",
    "SALLOC_PARTITION": "x",
    "SCANCEL_STATE": "PENDING",
    "SRUN_EXPORT_ENV": "NONE",
}
REACH = {"SLURM_CONF": "/etc/slurm.conf", "SLURM_CONF_SERVER": "head", "SLURM_JWT": "token"}
OTHERS = {"SINFONIETTA": "1", "MY_SLURM": "1", "TZ": "UTC"}


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in filter(is_slurm_variable, list(os.environ)):
        monkeypatch.delenv(name)
    for name, value in (SETTINGS | REACH | OTHERS).items():
        monkeypatch.setenv(name, value)
    return


def seen_by_a_program(changes: dict[str, str | None]) -> dict[str, str]:
    printed = run(["env", "-0"], env=changes).stdout
    return dict(pair.split("=", 1) for pair in printed.split("\0") if pair)


def test_the_host_s_cluster_is_reached_without_the_user_s_settings() -> None:
    seen = seen_by_a_program(clean_environment())
    assert not set(SETTINGS) & set(seen)
    assert (REACH | OTHERS).items() <= seen.items()
    assert set(REACH) == REACH_CLUSTER


def test_another_cluster_gets_its_own_variables_only() -> None:
    seen = seen_by_a_program(clean_environment({"SLURM_CONF": "/lab/slurm.conf", "MODULEPATH": "/lab"}))
    assert {name: value for name, value in seen.items() if is_slurm_variable(name)} == {"SLURM_CONF": "/lab/slurm.conf"}
    assert seen["MODULEPATH"] == "/lab"
    assert seen["PATH"] == os.environ["PATH"]


def test_more_variables_can_be_kept() -> None:
    seen = seen_by_a_program(clean_environment(keep=REACH_CLUSTER | {"SLURM_TIME_FORMAT"}))
    assert {name for name in seen if is_slurm_variable(name)} == REACH_CLUSTER | {"SLURM_TIME_FORMAT"}


def test_a_shown_command_unsets_the_same_variables() -> None:
    line = command_line(["env", "-0"], {"SLURM_JOB_ID": None, "SQUEUE_FORMAT": None, "SLURM_CONF": "/a b"})
    printed = run(["sh", "-c", line]).stdout
    assert "SLURM_CONF=/a b\0" in printed
    assert not {"SLURM_JOB_ID=7", "SQUEUE_FORMAT=%i"} & set(printed.split("\0"))
