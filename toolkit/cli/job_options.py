"""The options of the commands that write a job script: `ctk sbatch`, `ctk qsub` and `ctk script`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.completion import complete_cluster, complete_recipe
from toolkit.jobs.model import GateKind
from toolkit.scheduler import programs as scheduler

Command = Annotated[list[str] | None, typer.Argument(metavar="[--] COMMAND...", help="Command to run in the image.")]
JobName = Annotated[
    str | None,
    typer.Option(
        "--job-name",
        "-J",
        metavar="NAME",
        help="Name of the job. [default: the recipe's or the image's]",
        rich_help_panel="Job",
    ),
]
Image = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="SIF or sandbox. [default: the recipe's, else the only .sif here]",
        rich_help_panel="Job",
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        metavar="RECIPE",
        help="Recipe whose [job] gives defaults. [default: the one with the job's name, else the image's]",
        autocompletion=complete_recipe,
        rich_help_panel="Job",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Cluster profile (`ctk cluster list`): limits, requests, modules, binds. [default: the recipe's, yours or "
        "the site's]",
        autocompletion=complete_cluster,
        rich_help_panel="Resources",
    ),
]
Estimate = Annotated[
    bool,
    typer.Option("--estimate", help="Print node-hours and price at most; write nothing.", rich_help_panel="Script"),
]
Gpus = Annotated[
    str | None,
    typer.Option(
        metavar="N|TYPE:N",
        help="GPUs for the whole job, such as 1 or tesla:1; 0 means CPU only.",
        rich_help_panel="Resources",
    ),
]
Nodes = Annotated[int | None, typer.Option(metavar="N", help="Number of nodes.", rich_help_panel="Resources")]
TasksPerNode = Annotated[
    int | None,
    typer.Option(
        "--ntasks-per-node",
        metavar="N",
        help="Processes on each node, started by srun or mpirun.",
        rich_help_panel="Resources",
    ),
]
Ntasks = Annotated[
    int | None,
    typer.Option(
        "--ntasks",
        metavar="N",
        help="Processes of the whole job, spread evenly over its nodes.",
        rich_help_panel="Resources",
    ),
]
Constraint = Annotated[
    str | None,
    typer.Option(
        metavar="FEATURES", help="Features that the nodes must have, such as a100.", rich_help_panel="Resources"
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="LIMIT", help="Time limit: 4:00:00, 30 (minutes), 2-12 (days-hours).", rich_help_panel="Resources"
    ),
]
Mem = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory per node, such as 16G.", rich_help_panel="Resources")
]
CpusPerTask = Annotated[
    int | None, typer.Option(metavar="N", help="Cores for each process.", rich_help_panel="Resources")
]
Partition = Annotated[str | None, typer.Option(metavar="NAME", help="Partition (queue).", rich_help_panel="Resources")]
Account = Annotated[str | None, typer.Option(metavar="NAME", help="Account to charge.", rich_help_panel="Resources")]
Qos = Annotated[str | None, typer.Option(metavar="NAME", help="Quality of service.", rich_help_panel="Resources")]
Array = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS", help="Job array: 0-9, or 0-99%8 for eight tasks at a time.", rich_help_panel="Resources"
    ),
]
Bind = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SRC[:DST[:ro]]", help="Bind a directory of the host; repeatable.", rich_help_panel="Container"
    ),
]
Module = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Environment module to load on the node, after the cluster profile's; repeatable.",
        rich_help_panel="Container",
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=VALUE]",
        help="Set a variable in the container. Default: its value in the job. Repeatable.",
        rich_help_panel="Container",
    ),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File of lines NAME=VALUE for secrets, readable only by you.",
        rich_help_panel="Container",
    ),
]
NotSecret = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Accept a value that ctk refuses as a secret, by the name in its message; repeatable.",
        rich_help_panel="Container",
    ),
]
Shell = Annotated[
    str | None,
    typer.Option(metavar="LINE", help="Command line for the image's shell, instead of COMMAND.", rich_help_panel="Job"),
]
Directive = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OPTION",
        help="Any other option that your site needs, in the scheduler's language; repeatable.",
        rich_help_panel="Resources",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Path of the script. [default: ./NAME.sbatch, .sge or .pbs]",
        rich_help_panel="Script",
    ),
]
GpuGate = Annotated[
    bool,
    typer.Option(
        "--gpu-gate/--no-gpu-gate",
        help="Check the GPU on each node before the program starts.",
        rich_help_panel="GPU checks",
    ),
]
Gate = Annotated[
    GateKind,
    typer.Option(help="What that check asks; framework: compute on the GPU, too.", rich_help_panel="GPU checks"),
]
GpuMonitor = Annotated[
    bool,
    typer.Option("--gpu-monitor", help="End the log with the use of each GPU.", rich_help_panel="GPU checks"),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Write the script in any case: over any file of that name, for any image.",
        rich_help_panel="Script",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the script; write nothing.", rich_help_panel="Script")]
Submit = Annotated[
    bool, typer.Option("--submit", help="Submit the script and print the job ID.", rich_help_panel="Script")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Scheduler = Annotated[
    scheduler.Scheduler | None,
    typer.Option("--scheduler", help="Scheduler to write for. [default: this host's]", rich_help_panel="Script"),
]
QsubName = Annotated[
    str | None,
    typer.Option(
        "--job-name",
        "-N",
        metavar="NAME",
        help="Name of the job. [default: the recipe's or the image's]",
        rich_help_panel="Job",
    ),
]
Queue = Annotated[
    str | None,
    typer.Option("--partition", "--queue", "-q", metavar="NAME", help="Queue.", rich_help_panel="Resources"),
]
Request = Annotated[
    str | None,
    typer.Option(
        metavar="LINE",
        help="Your site's own line for nodes, cores, GPUs and memory: '-l node_f={nodes}'.",
        rich_help_panel="Resources",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Group to charge, given at submission: qsub -g NAME.", rich_help_panel="Resources"
    ),
]
BindLinks = Annotated[
    bool,
    typer.Option("--bind-links", help="Bind what symlinks in this directory lead to.", rich_help_panel="Container"),
]
Results = Annotated[
    bool,
    typer.Option("--results", help="Make results/NAME-ID for the job; CTK_RESULTS is its path.", rich_help_panel="Job"),
]
NodeTmp = Annotated[
    bool,
    typer.Option(
        "--node-tmp", help="Put TMPDIR on the node's own disk; remove it at the end.", rich_help_panel="Container"
    ),
]
LineBuffered = Annotated[
    bool,
    typer.Option(
        "--line-buffered",
        help="Write each line of a C program to the log at once (stdbuf -oL of the image). Python does so by itself.",
        rich_help_panel="Job",
    ),
]
Template = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Your own template of the script, made of ctk's blocks.", rich_help_panel="Script"
    ),
]
