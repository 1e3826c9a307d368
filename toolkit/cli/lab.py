"""`ctk lab`: a practice cluster, up and down, and a look at it from inside and outside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.documents import clusters as documents
from toolkit.cli.output import live_steps, print_findings, print_json, print_table, print_text, say, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.lab.status import Status

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="""Run a practice cluster, a real Slurm without root.

    Try jobs, limits and failures without a queue, and without risk to a real cluster.

        ctk lab up                   start it
        eval "$(ctk lab env)"        make plain sbatch, squeue and srun use it
        ctk lab down                 stop it and remove all its files
    """,
)

_SHOWN = 10  # finished jobs in `status`, the latest ones


def _complete_name() -> list[str]:
    from toolkit.lab.registry import names
    from toolkit.support.errors import CtkError

    try:
        return names()
    except CtkError:  # a host without a home is for a command to explain, not for the Tab key
        return []


Name = Annotated[
    str | None,
    typer.Option("--name", help="Name of the lab. [default: the only one]", autocompletion=_complete_name),
]
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="Name of a node: n1, ….")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def up(
    name: Annotated[str, typer.Option("--name", help="Name of the lab; several labs can be up at once.")] = "lab",
    nodes: Annotated[int, typer.Option("--nodes", help="Number of nodes: n1, n2, ….")] = 4,
    gpus_per_node: Annotated[int, typer.Option("--gpus-per-node", help="Stand-in GPUs of each node.")] = 2,
    gpu_type: Annotated[str, typer.Option("--gpu-type", help="GPU type, as in `--gpus TYPE:1`.")] = "tesla",
    real_gpus: Annotated[
        bool, typer.Option("--real-gpus", help="Share the machine's own GPUs among the nodes.")
    ] = False,
    cpus_per_node: Annotated[
        int, typer.Option("--cpus-per-node", help="CPUs of each node, for the scheduler; the machine can have fewer.")
    ] = 4,
    port: Annotated[
        int | None, typer.Option("--port", help="First of N + 1 TCP ports on loopback. [default: free ports]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start the lab even on a machine of a real cluster.")] = False,
    json: Json = False,
) -> None:
    """Start a lab. It is ready when the command ends, in a few seconds.

    The nodes are daemons of your own on this machine that listen on loopback only. There are three partitions: cpu
    (the default) and gpu with a limit of one day, and debug with one node and five minutes. A job that exceeds
    debug's limits stays pending forever, and squeue shows why: meet this here, not on the real cluster.

        ctk lab up --nodes 8 --gpus-per-node 4 --gpu-type a100
        ctk lab up --name class-2 --gpus-per-node 0
    """
    from toolkit.lab.cluster import up as start
    from toolkit.lab.gpus import real_gpus as find_gpus
    from toolkit.lab.plan import LabPlan
    from toolkit.support.text import count

    plan = LabPlan(
        name=name,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        cpus_per_node=cpus_per_node,
        gpu_type=gpu_type,
        port=port,
        real_gpus=find_gpus() if real_gpus else (),
    )
    with live_steps("ctk lab up") as on_step:
        lab = start(plan, force=force, on_step=on_step)
    if json:
        print_json("ctk.lab-up/1", documents.started_lab(lab))
        return
    gpus = sum(plan.gpu_count(node) for node in plan.node_names)
    kind = "real" if plan.real_gpus else "stand-in"
    hardware = f"{count(nodes, 'node')}, {count(cpus_per_node, 'CPU')} each, {count(gpus, f'{kind} GPU')} ({gpu_type})"
    say(f"The lab {name!r} is up: {hardware}.")
    suggest(f'eval "$(ctk lab env --name {name})"', "sinfo")


@app.command()
def down(
    name: Name = None,
    host_is_gone: Annotated[
        bool,
        typer.Option("--host-is-gone", help="Remove the record of a lab whose host no longer exists or was renamed."),
    ] = False,
) -> None:
    """Stop a lab and its jobs, and remove its processes, files and sockets.

    A lab that crashed is removed too. The logs of the daemons are removed; files that your jobs wrote are kept.
    """
    from toolkit.lab.cluster import down as stop
    from toolkit.lab.registry import find

    lab = find(name)
    with live_steps("ctk lab down") as on_step:
        stop(lab, host_is_gone=host_is_gone, on_step=on_step)
    say(f"The lab {lab.name!r} is down; its processes and files were removed.")
    if os.environ.get("SLURM_CONF") == str(lab.place.slurm_conf):
        suggest("unset SLURM_CONF")


@app.command("list")
def list_labs(json: Json = False) -> None:
    """Show the labs of this user."""
    from toolkit.lab.cluster import condition
    from toolkit.lab.registry import find, names

    labs = [(lab, condition(lab).value) for lab in map(find, names())]
    if json:
        rows = [documents.listed_lab(lab, how) for lab, how in labs]
        print_json("ctk.labs/1", {"labs": rows})
        return
    print_table(
        ["name", "condition", "nodes", "host", "directory"],
        [(lab.name, how, str(lab.plan.nodes), lab.host, str(lab.place.directory)) for lab, how in labs],
    )
    if not labs:
        suggest("ctk lab up")


@app.command()
def status(name: Name = None, json: Json = False) -> None:
    """Show a lab's nodes, its queue, and the jobs that have finished.

    A finished job is shown with its state, exit status and nodes, as sacct shows it on a real cluster. Exit status 1:
    the lab is not up.
    """
    from toolkit.lab.cluster import Condition
    from toolkit.lab.registry import find
    from toolkit.lab.status import judge_lab, look

    seen = look(find(name))
    if json:
        print_json("ctk.lab/1", documents.lab_status(seen), judge_lab(seen))
    else:
        _show(seen)
        print_findings(judge_lab(seen))
    raise typer.Exit(0 if seen.condition is Condition.UP else 1)


def _show(status: Status) -> None:
    say(f"The lab {status.lab.name!r}: {status.condition.value}.")
    _table(
        "Nodes",
        ["node", "state", "CPUs", "GPUs"],
        [
            (node.name, node.state, f"{node.cpus_used}/{node.cpus}", f"{node.gpus_used}/{node.gpus}")
            for node in status.nodes
        ],
    )
    _table(
        "Queue",
        ["job", "name", "partition", "state", "time", "nodes or reason"],
        [(job.job, job.name, job.partition, job.state, job.elapsed, job.where) for job in status.queue],
    )
    _table(
        "Finished",
        ["job", "name", "state", "exit", "nodes", "ended"],
        [
            (job.job, job.name, job.state, f"{job.exit_status}:{job.signal}", job.nodes, str(job.ended or ""))
            for job in status.finished[-_SHOWN:]
        ],
    )


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        print_table(columns, rows, title=title)


@app.command()
def env(name: Name = None, json: Json = False) -> None:
    """Print the variables with which plain sbatch, squeue and srun use the lab.

        eval "$(ctk lab env)"
        sbatch job.sbatch

    Exit status 3, and no variables: the lab is not up on this host.
    """
    from toolkit.lab.configuration import shell_text
    from toolkit.lab.registry import find
    from toolkit.lab.status import require_up

    variables = require_up(find(name)).environment()
    if json:
        print_json("ctk.lab-env/1", {"environment": variables})
    else:
        print_text(shell_text(variables))


@app.command()
def shell(name: Name = None) -> None:
    """Open a shell in which plain sbatch, squeue, srun and module use the lab. `exit` leaves it; the lab stays up.

    The shell inherits no variables of Slurm (SBATCH_*, SLURM_CLUSTERS, ...), since they refer to another cluster.
    """
    from toolkit.lab.configuration import shell_command
    from toolkit.lab.registry import find
    from toolkit.lab.status import require_up
    from toolkit.scheduler.environment import clean_environment
    from toolkit.support.processes import attach

    lab = require_up(find(name))
    raise typer.Exit(
        attach(shell_command(os.environ.get("SHELL"), lab.place), env=clean_environment(lab.environment()))
    )


@app.command()
def logs(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="Name of a daemon: slurmctld, munged, or a node (n1, …).")
    ] = "slurmctld",
    name: Name = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Number of lines from the end.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until Ctrl-C.")] = False,
) -> None:
    """Show the log of a daemon of the lab, which only an administrator sees on a real cluster.

    If a job vanished without a log, slurmd's log on its node gives the reason:

        ctk lab logs n1
    """
    from toolkit.lab.registry import find
    from toolkit.lab.status import log_file
    from toolkit.support.processes import stream

    path = log_file(find(name), part)
    # Not straight to the terminal: a job's name is in it as the job's owner wrote it.
    raise typer.Exit(
        stream(["tail", f"--lines={lines}", *(["--follow=name"] if follow else []), str(path)], print_text)
    )


@app.command("kill-node")
def kill_node(node: NodeName, name: Name = None) -> None:
    """Simulate a power failure of a node: its daemon and the processes of its jobs are killed at once.

    The controller is not told. Watch with squeue and sinfo how it notices, and how the node's jobs run again.
    """
    from toolkit.lab.nodes import kill_node as kill
    from toolkit.lab.registry import find

    lab = find(name)
    kill(lab, node)
    say(f"The node {node} is down. The controller notices within a minute, and requeues its jobs.")
    suggest(f"ctk lab status --name {lab.name}", f"ctk lab restore-node {node} --name {lab.name}")


@app.command("restore-node")
def restore_node(node: NodeName, name: Name = None) -> None:
    """Restart a node after kill-node."""
    from toolkit.lab.nodes import restore_node as restore
    from toolkit.lab.registry import find

    lab = find(name)
    with live_steps(f"ctk lab restore-node {node}"):
        restore(lab, node)
    say(f"The node {node} is back.")
