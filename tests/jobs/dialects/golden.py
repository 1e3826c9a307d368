"""Golden files: whole scripts, regenerated for review by `CTK_GOLDEN=write pytest tests/jobs/dialects`.

The jobs are here, since tests/real/test_golden_scripts.py runs each script on its scheduler.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from toolkit.jobs.dialects.known import DIALECTS
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import Directive, GateCheck, Job
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
from toolkit.scheduler.values import NO_TIME_LIMIT, Gpus, parse_array

GOLDEN = Path(__file__).parent / "golden"
PLAIN = Job("plain", "./trial.sif", ("python", "train.py"), gpus=Gpus(1))
_COMMAND = ("python", "train.py", "--name", "it's $HOME")

SLURM_JOBS = {
    "plain": PLAIN,
    "full": Job(
        name="full",
        image="/apps/images/trial.sif",
        command=_COMMAND,
        gpus=Gpus(2, "tesla"),
        nodes=2,
        tasks_per_node=1,
        time=90_061,
        mem="15G",
        cpus_per_task=4,
        partition="gpu,debug",
        account="lab42",
        qos="high",
        binds=("/scratch/my data:/data:ro",),
        environment=(("GREETING", "$(id) 'é'"),),
        directives=(Directive("exclusive"), Directive("comment", "two words # three")),
        runtime="/opt/apptainer 1.4/bin/apptainer",
        userns=True,
    ),
    "no-gate": Job("no-gate", "./trial.sif", ("python", "train.py"), gpus=Gpus(1), gate=False),
    "monitor": Job("monitor", "./trial.sif", ("python", "train.py"), gpus=Gpus(1), gate=False, monitor=True),
    "array": Job("array", "./trial.sif", ("true",), gpus=Gpus(0), time=NO_TIME_LIMIT, array=parse_array("0-9%4")),
}
GRID_ENGINE_JOBS = {
    "plain": PLAIN,
    "full": Job(
        name="full",
        image="/apps/images/trial.sif",
        command=_COMMAND,
        gpus=Gpus(4, "a100"),
        nodes=2,
        tasks_per_node=2,
        cpus_per_task=4,
        time=90_061,
        mem="16G",
        account="lab42",
        partition="gpu.q",
        binds=("/scratch/my data:/data:ro",),
        environment=(("GREETING", "$(id) 'é'"),),
        inherited=("WANDB_API_KEY",),
        env_file="./secrets.env",
        directives=(Directive("m", "ea"), Directive("R", "y")),
        runtime="/opt/apptainer 1.4/bin/apptainer",
        gate_check=GateCheck("PyTorch", "print('ctk-gate: computed 2 it computes')", "python3"),
        modules=("cuda/12.4",),
        requests=RequestTemplates(
            resources=RequestTemplate("-l node_f={nodes}"), arguments=(RequestTemplate("-g {account}"),)
        ),
    ),
    "array": Job("array", "./trial.sif", ("true",), gpus=Gpus(0), time=NO_TIME_LIMIT, array=parse_array("1-9:2%4")),
    "slots": Job(
        "slots", "./trial.sif", ("true",), gpus=Gpus(2), tasks_per_node=2, cpus_per_task=4, time=60, monitor=True
    ),
    "unit": replace(
        PLAIN, name="unit", gate=False, requests=RequestTemplates(resources=RequestTemplate("-l node_f={nodes}"))
    ),
}
FULL_PBS = Job(
    name="full",
    image="/apps/images/trial.sif",
    command=_COMMAND,
    gpus=Gpus(4),
    nodes=2,
    tasks_per_node=2,
    cpus_per_task=4,
    time=90_061,
    mem="16G",
    account="lab42",
    partition="gpu",
    binds=("/scratch/my data:/data:ro",),
    environment=(("GREETING", "$(id) 'é'"),),
    inherited=("WANDB_API_KEY",),
    env_file="./secrets.env",
    directives=(Directive("m", "ea"), Directive("W", "group_list=lab42")),
)
ARRAY_PBS = Job("array", "./trial.sif", ("true",), gpus=Gpus(0), time=60, array=parse_array("0-9:2%4"))
OPENPBS_JOBS = {"plain": PLAIN, "full": FULL_PBS, "array": ARRAY_PBS}
TORQUE_JOBS = {
    "plain": PLAIN,
    "node": replace(FULL_PBS, nodes=None, inherited=(), env_file=None, tasks_per_node=None, directives=()),
    "nodes": replace(FULL_PBS, name="nodes", gpus=None, mem=None),
    "array": ARRAY_PBS,
}
SUFFIXES = {
    Scheduler.SLURM: ("sbatch", SLURM_JOBS),
    Scheduler.GRID_ENGINE: ("sge", GRID_ENGINE_JOBS),
    Scheduler.OPENPBS: ("pbs", OPENPBS_JOBS),
    Scheduler.TORQUE: ("torque", TORQUE_JOBS),
}
# Each golden file, with its scheduler and its job.
SCRIPTS = {
    f"{name}.{suffix}": (scheduler, job) for scheduler, (suffix, jobs) in SUFFIXES.items() for name, job in jobs.items()
}


def check_golden(name: str) -> None:
    """Compare the script of the golden file of that name with the file."""
    scheduler, job = SCRIPTS[name]
    dialect = DIALECTS[scheduler]
    dialect.check(job)
    text, path = script_text(job, dialect, "Golden"), GOLDEN / name
    if os.environ.get("CTK_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()
