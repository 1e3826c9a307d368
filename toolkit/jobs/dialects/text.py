"""The text of a job's script: the blocks of `sbatch/`, filled with a job in the language of one scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.jobs.gate import LIMIT, START_LIMIT, gate_values, layer_values, request_values
from toolkit.jobs.model import SIGNALS
from toolkit.jobs.quoting import quoted
from toolkit.runtime.commands import line_buffered
from toolkit.runtime.engine import NAMES
from toolkit.runtime.options import UNBUFFERED, container_environment, exec_arguments
from toolkit.scheduler.programs import Scheduler
from toolkit.support.templates import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.jobs.dialects.dialect import Dialect
    from toolkit.jobs.dialects.template import Template
    from toolkit.jobs.model import Job

# Where Environment Modules and Lmod put the file that defines `module`. The shell of a job on Grid Engine is no login
# shell, and PBS passes no functions on.
_MODULE_SETUP = tuple(f"/etc/profile.d/{name}.sh" for name in ("modules", "lmod", "z00_lmod"))


def script_text(job: Job, dialect: Dialect, marker: str, template: Template | None = None) -> str:
    """The whole script. `marker` is the comment by which ctk recognises its own script.

    With `template`, of a user, instead of ctk's own. Raises WrongInput if it cannot be filled.

    The values of `job` are those that toolkit.jobs.values and `dialect` let through: a line of options is not shell,
    and nothing that stands there could be quoted for it.
    """
    values = _values(job, dialect, marker)
    return render("sbatch/job.j2", **values) if template is None else template.fill(values)


def _values(job: Job, dialect: Dialect, marker: str) -> dict[str, object]:
    launcher = dialect.launcher(job)
    slurm = dialect.words.scheduler is Scheduler.SLURM
    threads = _threads(job, dialect)
    # A variable that the job has to inherit gets no value here: the script ends where it is not set.
    unbuffered = None if UNBUFFERED in job.inherited else UNBUFFERED
    written = {"OMP_NUM_THREADS": threads, UNBUFFERED: unbuffered, "CTK_RESULTS": job.results}
    setup = (job.module_setup,) if job.module_setup else () if slurm else _MODULE_SETUP
    return {
        "scheduler": dialect.words,
        "marker": marker,
        "provenance": job.provenance,
        "directives": dialect.directives(job),
        "number": dialect.number(job),
        "array": job.array is not None,
        "image": quoted(job.image),
        "modules": tuple(map(quoted, job.modules)),
        "module_setup": " ".join(map(quoted, setup)),
        "threads": threads,
        "unbuffered": unbuffered,
        "exported": (*(name for name, value in written.items() if value), *job.inherited),
        "results": job.results,
        "node_tmp": job.node_tmp,
        "find_runtime": " || ".join(f"command -v {quoted(name)}" for name in (job.runtime, *NAMES) if name),
        "environment": container_environment().items(),
        "env_file": quoted(job.env_file) if job.env_file else None,
        "inherited": job.inherited,
        "launched": bool(launcher),
        "launch": bool(launcher) and not slurm,
        "nodes": job.nodes or 1,
        "signals": SIGNALS,
        "forward": dialect.forward(job),
        "gate": job.gate and job.uses_gpu,
        "limit": LIMIT,
        "start_limit": START_LIMIT,
        **request_values(job, slurm=slurm),
        "gate_check": gate_values(job.gate_check),
        **layer_values(job.layers),
        "monitor": job.monitor and job.uses_gpu,
        "container": " ".join(_container(job, ())),
        "command": _command(job, launcher),
    }


def _threads(job: Job, dialect: Dialect) -> str | None:
    """The value of OMP_NUM_THREADS; None where the user gives the job one.

    Of each process, these are its cores. Grid Engine and PBS often bind no process to cores, and without the variable a
    program would start a thread for each core of the node. Slurm passes the user's own value on.
    """
    if "OMP_NUM_THREADS" in (*dict(job.environment), *job.inherited):
        return None
    cores = str(job.cpus_per_task or 1)
    if dialect.words.scheduler is Scheduler.SLURM:
        if job.cpus_per_task is None and job.tasks == 1:
            cores = "${SLURM_CPUS_ON_NODE:-1}"
        return f'"${{OMP_NUM_THREADS:-{cores}}}"'
    whole = job.requests.resources is not None and job.cpus_per_task is None and job.tasks == 1
    return '"$(nproc)"' if whole else cores


def _command(job: Job, launcher: Sequence[str]) -> str:
    # A function of the script cannot be the program of `exec`: it ends in one itself.
    start = [] if launcher[:1] == ("launch",) else ["exec"]
    shell = ["bash", "-c", '"$protected"', '"$image"'] if launcher else []  # on each node, see blocks/fuse.j2
    command = line_buffered(job.command) if job.line_buffered else job.command
    return " ".join([*start, *launcher, *shell, *_container(job, ('"${check[@]}"',)), *map(quoted, command)])


def _container(job: Job, check: Sequence[str]) -> list[str]:
    """The words in front of a command in the job's container, with those of `check` just behind the image."""
    # The container's own `env` sets the variables: apptainer hands values from --env and APPTAINERENV_ to a shell,
    # which runs the text in $(…) there (seen with 1.4.5; singularity 3.8 knows no --no-eval).
    variables = [f"{name}={value}" for name, value in job.environment]
    command = ["env", *variables] if variables else []
    arguments = exec_arguments(job.image, command, gpu=job.uses_gpu, binds=job.binds, userns=job.userns)
    options = list(map(quoted, arguments[: len(arguments) - len(command) - 1]))
    options += ["--bind", '"$node_tmp"'] if job.node_tmp else []
    return ['"$runtime"', *options, '"$image"', *check, *map(quoted, command)]
