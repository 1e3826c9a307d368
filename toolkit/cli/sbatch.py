"""`ctk sbatch`: write a job script for Slurm, and submit it if requested."""

from __future__ import annotations

from toolkit.cli import job_options as options
from toolkit.cli.job_script import JobOptions, write_job
from toolkit.jobs.model import GateKind


def sbatch(
    command: options.Command = None,
    job_name: options.JobName = None,
    image: options.Image = None,
    recipe: options.Recipe = None,
    cluster: options.Cluster = None,
    gpus: options.Gpus = None,
    nodes: options.Nodes = None,
    tasks_per_node: options.TasksPerNode = None,
    ntasks: options.Ntasks = None,
    time: options.Time = None,
    mem: options.Mem = None,
    cpus_per_task: options.CpusPerTask = None,
    partition: options.Partition = None,
    account: options.Account = None,
    qos: options.Qos = None,
    constraint: options.Constraint = None,
    array: options.Array = None,
    bind: options.Bind = None,
    module: options.Module = None,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    not_secret: options.NotSecret = None,
    shell: options.Shell = None,
    directive: options.Directive = None,
    output: options.Output = None,
    gpu_gate: options.GpuGate = True,
    gate: options.Gate = GateKind.DRIVER,
    gpu_monitor: options.GpuMonitor = False,
    bind_links: options.BindLinks = False,
    results: options.Results = False,
    node_tmp: options.NodeTmp = False,
    line_buffered: options.LineBuffered = False,
    template: options.Template = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    estimate: options.Estimate = False,
    submit: options.Submit = False,
    json: options.Json = False,
) -> None:
    """Write a Slurm job script that cannot lose its log.

        ctk sbatch --job-name keras-bert                      image, command, GPUs and time from the recipe
        ctk sbatch -J try1 --image trial.sif --gpus tesla:1 --time 2:00:00 python train.py --lr 0.1
        ctk sbatch -J sweep --image trial.sif --array 0-9     ten small jobs instead of one big one

    Submit the script with plain `sbatch NAME.sbatch` from this directory. All output of the job and of Slurm is written
    to logs/NAME-ID.log; logs/ does not need to exist. Pass any other option that your site requires as a directive:
    --directive=--exclude=node7.

    Options of ctk come before the command; all words after the command's name belong to the command. They are not
    expanded by a shell on the node; use --shell 'LINE' for variables of the job, pipes and the like. Give --env the
    name of a secret without its value, or put it into a file for --env-file: others can read the script.

    A job that asks for GPUs checks them on each node before the program starts, and ends if they cannot be used or are
    fewer than requested: within seconds; if a call of the driver hangs, after 60 seconds; with --gate framework, after
    300 seconds if one of its steps hangs. An image that cannot use a GPU is refused for such a job.

    With a cluster profile, a request that the cluster does not allow is refused, and the nearest one that it allows is
    named. --estimate prints what the job costs at most; on Slurm it asks `sbatch --test-only`, too.

    A script that you have changed is kept, unless you give --force.
    """
    given = JobOptions(**locals())  # first of all: these are the parameters
    from toolkit.jobs.dialects.slurm import SLURM

    write_job(given, SLURM)
