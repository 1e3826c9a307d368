"""`ctk qsub`: write a job script for Grid Engine or PBS, and submit it if requested."""

from __future__ import annotations

from toolkit.cli import job_options as options
from toolkit.cli.job_script import JobOptions, write_job
from toolkit.jobs.model import GateKind


def qsub(
    command: options.Command = None,
    job_name: options.QsubName = None,
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
    partition: options.Queue = None,
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
    """Write a Grid Engine or PBS job script that cannot lose its log.

        ctk qsub --job-name keras-bert                        image, command, GPUs and time from the recipe
        ctk qsub -N try1 --image trial.sif --gpus 1 --time 2:00:00 python train.py --lr 0.1
        ctk qsub -N big --image trial.sif --gpus 4 --request '-l node_f={nodes}' --group tga-x python train.py

    The script is for the scheduler of this host: Grid Engine, OpenPBS or Torque. On another host, name it:
    --scheduler sge, pbs or torque. Submit the script with plain `qsub` from this directory. The output of the job is
    written to logs/NAME-ID.log; logs/ does not need to exist.

    Sites name GPUs and nodes in their own ways. --request gives the line of your site; in braces it has type, count
    (GPUs on each node), total, slot_gpus, nodes, processes, cores, node_cores, slots, memory, slot_memory, queue and
    account. Pass any other option as a directive: --directive='-l s_gpu=1'. What the scheduler cannot express is
    refused.

    Otherwise, the command is as `ctk sbatch`.
    """
    given = {name: value for name, value in locals().items() if name != "scheduler"}  # these are the parameters
    from toolkit.cli.schedulers import qsub_dialect

    write_job(JobOptions(**given), qsub_dialect(scheduler, cluster))
