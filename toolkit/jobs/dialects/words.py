"""The words of each scheduler in a job script."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolkit.scheduler.programs import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a scheduler in a script: values in shell are as bash expands them.

    `title` is its name. A line of options begins with `prefix`, the name of a script ends in `suffix`. `submit` is the
    program that submits it, `ctk` the command that writes such a script. `export` says how a variable of the user
    reaches the job. `job_variable` is set in each job; `name` is the job's name. `log` is the template of its log
    block, and `spools` says that the scheduler copies the output of a job itself. `node` is the node of this process,
    `nodes` those of the job, `nodes_or_host` the same with this host where they are unknown. `without_node` and
    `without_nodes` say how to keep a job off nodes, and `reported` what to call a node then. `ask_gpu` says how a job
    asks for a GPU. The scheduler takes a script's `reserved_statuses` for orders to
    itself.
    """

    scheduler: Scheduler
    title: str
    prefix: str
    suffix: str
    submit: str
    ctk: str
    export: str
    job_variable: str
    name: str
    log: str
    node: str = "$HOSTNAME"
    nodes: str
    nodes_or_host: str
    ask_gpu: str
    without_node: str = ""
    reported: str = "$node"
    without_nodes: str = "and report the nodes that printed no line above to your site."
    spools: bool = False
    reserved_statuses: tuple[int, ...] = ()


SLURM = Words(
    scheduler=Scheduler.SLURM,
    title="Slurm",
    prefix="#SBATCH",
    suffix=".sbatch",
    submit="sbatch",
    ctk="ctk sbatch",
    ask_gpu="Ask Slurm for a GPU (ctk sbatch --gpus 1)",
    export="export it before sbatch (and without --export=NONE)",
    job_variable="SLURM_JOB_ID",
    name="$SLURM_JOB_NAME",
    log="slurm",
    node="${SLURMD_NODENAME:-$HOSTNAME}",
    nodes="${SLURM_JOB_NODELIST:-?}",
    nodes_or_host="${SLURM_JOB_NODELIST:-$HOSTNAME}",
    without_node=" without this node (sbatch --exclude=$node)",
    reported="it",
    without_nodes="without the nodes that printed no line \\\n"
    "above (sbatch --exclude=NODE), and report them to your site.",
)
GRID_ENGINE = Words(
    scheduler=Scheduler.GRID_ENGINE,
    title="Grid Engine",
    prefix="#$",
    suffix=".sge",
    submit="qsub",
    ctk="ctk qsub",
    ask_gpu="Ask Grid Engine for a GPU (ctk qsub --gpus 1)",
    export="export it before qsub",
    job_variable="JOB_ID",
    name="$JOB_NAME",
    log="grid-engine",
    nodes='$(cut -d\' \' -f1 "${PE_HOSTFILE:-/dev/null}" | paste -sd, | grep . || echo "$HOSTNAME")',
    nodes_or_host="$HOSTNAME",
    without_node=" without this node (qsub -l 'hostname=!$node')",
    reported="it",
    without_nodes="without the nodes that printed no line \\\n"
    "above (qsub -l 'hostname=!NODE'), and report them to your site.",
    reserved_statuses=(99, 100),
)
OPENPBS = Words(
    scheduler=Scheduler.OPENPBS,
    title="OpenPBS",
    prefix="#PBS",
    suffix=".pbs",
    submit="qsub",
    ctk="ctk qsub",
    ask_gpu="Ask OpenPBS for a GPU (ctk qsub --gpus 1)",
    export="export it before qsub",
    job_variable="PBS_JOBID",
    name="$job_name",
    log="pbs",
    nodes='$(sort -u -- "${PBS_NODEFILE:-/dev/null}" 2>/dev/null | paste -sd, | grep . || echo "$HOSTNAME")',
    nodes_or_host="$HOSTNAME",
    spools=True,
)
TORQUE = Words(
    scheduler=Scheduler.TORQUE,
    title="Torque",
    prefix="#PBS",
    suffix=".pbs",
    submit="qsub",
    ctk="ctk qsub",
    ask_gpu="Ask Torque for a GPU (ctk qsub --gpus 1)",
    export="export it before qsub",
    job_variable="PBS_JOBID",
    name="$job_name",
    log="pbs",
    nodes=OPENPBS.nodes,
    nodes_or_host="$HOSTNAME",
    spools=True,
)
# Of lines that run in a script of any scheduler: bash knows there which one it is. On Slurm they ask each node.
ANY = replace(
    SLURM,
    title="the scheduler",
    ask_gpu="Ask the scheduler for a GPU in the way of your site",
    without_node="${SLURM_JOB_ID:+ without this node (sbatch --exclude=$node)}"
    "${SGE_TASK_ID:+ without this node (qsub -l hostname=\\\\!$node)}",
    without_nodes="${SLURM_JOB_ID:+without the nodes that printed no \\\nline above (sbatch --exclude=NODE), }"
    "and report the nodes that printed no line above to your site.",
    reported="$node",
)
