"""The script, whole, against golden files: `CTK_GOLDEN=write pytest tests/jobs` writes them anew for review."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.jobs.dialects.slurm import script_text
from toolkit.jobs.model import NO_TIME_LIMIT, Directive, Gpus, Job

GOLDEN = Path(__file__).parent / "golden"
JOBS = {
    "plain": Job("plain", "./trial.sif", ("python", "train.py"), gpus=Gpus(1)),
    "full": Job(
        name="full",
        image="/apps/images/trial.sif",
        command=("python", "train.py", "--name", "it's $HOME"),
        gpus=Gpus(2, "tesla"),
        nodes=2,
        tasks_per_node=1,
        time=90_061,
        mem="16G",
        cpus_per_task=4,
        partition="gpu,debug",
        account="lab42",
        binds=("/scratch/my data:/data:ro",),
        environment=(("GREETING", "$(id) 'é'"),),
        directives=(Directive("exclusive"), Directive("comment", "two words # three"), Directive("qos", "high")),
        runtime="/opt/apptainer 1.4/bin/apptainer",
        userns=True,
    ),
    "array": Job("array", "./trial.sif", ("true",), gpus=Gpus(0), time=NO_TIME_LIMIT, array="0-9%4"),
}


@pytest.mark.parametrize("name", JOBS)
def test_the_whole_script(name: str) -> None:
    path = GOLDEN / f"{name}.sbatch"
    text = script_text(JOBS[name], "Golden")
    if os.environ.get("CTK_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_the_driver_is_bound_only_where_gpus_are_asked_for() -> None:
    def texts(**resources: object) -> str:
        return script_text(Job("x", "./x.sif", ("true",), **resources), "")  # type: ignore[arg-type]

    assert " --nv " in texts(gpus=Gpus(1))
    assert " --nv " in texts(directives=(Directive("gres", "gpu:1"),))
    assert " --nv " not in texts(gpus=Gpus(0)) + texts() + texts(directives=(Directive("exclusive"),))


def test_several_tasks_are_started_by_srun_and_one_is_not() -> None:
    assert 'srun --export=ALL --disable-status "$runtime" --quiet exec' in script_text(
        Job("x", "./x.sif", ("true",), nodes=2), ""
    )
    assert "srun" not in script_text(Job("x", "./x.sif", ("true",), nodes=1, cpus_per_task=2), "")
