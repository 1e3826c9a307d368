"""`ctk script`: write a job script for any scheduler."""

from __future__ import annotations

from toolkit.cli import job_options as options
from toolkit.cli.job_script import JobOptions, write_job
from toolkit.jobs.model import GateKind


def script(
    command: options.Command = None,
    job_name: options.JobName = None,
    image: options.Image = None,
    recipe: options.Recipe = None,
    scheduler: options.Scheduler = None,
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
    array: options.Array = None,
    request: options.Request = None,
    group: options.Group = None,
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
    """Write a job script for any scheduler.

        ctk script --scheduler sge -J try1 --image trial.sif --gpus 1 --time 2:00:00 python train.py
        ctk script --scheduler pbs -J try1 --image trial.sif --gpus 1 --dry-run python train.py
        ctk script --cluster tsubame4 -J try1 --image trial.sif --gpus 1 --partition gpu_1 --time 1:00:00

    The schedulers are Slurm, Grid Engine (sge), OpenPBS (pbs) and Torque. The options are those of `ctk sbatch` and
    `ctk qsub`. No scheduler is needed on this host, unless you --submit.
    """
    given = {name: value for name, value in locals().items() if name != "scheduler"}  # these are the parameters
    from toolkit.cli.schedulers import any_dialect

    write_job(JobOptions(**given), any_dialect(scheduler, cluster))
