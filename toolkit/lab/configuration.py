"""The files that Slurm reads (slurm.conf, gres.conf, the task prolog), as pure functions of a plan."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.lab.tracking import MARK_VARIABLE

if TYPE_CHECKING:
    from toolkit.lab.paths import LabPaths
    from toolkit.lab.plan import LabPlan

_MARK = "# A practice cluster of ctk: written by `ctk lab up`, removed by `ctk lab down`."

MEMORY_CHECK_SECONDS = 2
CLUSTER_PREFIX = "ctk-"  # no other cluster's name has this prefix; machine/foreign-cluster checks it too

# Virtual nodes share one kernel: Open MPI would treat ranks on two nodes as one node and connect them by a shared
# memory segment, which ends in SIGSEGV. Over loopback TCP they are separate. Open MPI 5 uses loopback only if it is
# named.
_OPEN_MPI = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}


@dataclass(frozen=True, slots=True)
class Host:
    """The facts that a configuration needs: the short host name, and the user who runs the daemons."""

    name: str
    user: str


def slurm_conf(plan: LabPlan, place: LabPaths, host: Host, port: int) -> str:
    """The full slurm.conf. The controller listens on `port`, the nodes on those that follow it.

    Source of every key: slurm.conf(5) of Slurm 22.05.
    """
    settings = {
        "ClusterName": CLUSTER_PREFIX + plan.name,
        "SlurmctldHost": f"{host.name}(127.0.0.1)",
        "SlurmctldPort": port,
        "SlurmUser": host.user,
        "SlurmdUser": host.user,
        "AuthType": "auth/munge",
        # A requeued job waits until its first credential has expired: 20 s instead of two minutes.
        "AuthInfo": f"socket={place.munge_socket},cred_expire=20",
        # No connections from outside this machine.
        "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
        "StateSaveLocation": place.state,
        "SlurmdSpoolDir": place.spool("%n"),
        # One per node: in a shared TmpFS, PMIx of two nodes would create the same directory, and the second step fails.
        "TmpFS": place.temporary("%n"),
        "SlurmctldPidFile": place.directory / "slurmctld.pid",
        "SlurmdPidFile": place.directory / "slurmd.%n.pid",
        "SlurmctldLogFile": place.log("slurmctld"),
        "SlurmdLogFile": place.log("%n"),
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "TaskProlog": place.task_prolog,
        "Epilog": place.epilog,
        "MpiDefault": "none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": max(1, plan.memory_per_node // plan.cpus_per_node // 2),
        # Nodes may have more CPUs and memory than the machine.
        "SlurmdParameters": "config_overrides",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=5,bf_continue",
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": place.finished_jobs,
        "AccountingStorageType": "accounting_storage/none",
        # Without control groups, which need root, Slurm measures the memory of a job every few seconds and
        # kills one that uses more than its --mem. Pages that its processes share count once.
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": f"task={MEMORY_CHECK_SECONDS}",
        "JobAcctGatherParams": "OverMemoryKill,UsePss",
        # A failed node is noticed after this many seconds, its jobs are requeued, and it may return.
        "SlurmdTimeout": 15,
        "JobRequeue": 1,
        "ReturnToService": 2,
        "KillWait": 10,
        "OverTimeLimit": 0,
        "MailProg": "/bin/true",
    }
    if _has_gpus(plan):
        settings["GresTypes"] = "gpu"
    lines = [_MARK, *(f"{key}={value}" for key, value in settings.items())]
    lines += [_node_line(plan, host, node, port + number) for number, node in enumerate(plan.node_names, start=1)]
    return "\n".join([*lines, *_partition_lines(plan)]) + "\n"


def _has_gpus(plan: LabPlan) -> bool:
    return any(plan.gpu_count(node) for node in plan.node_names)


def _node_line(plan: LabPlan, host: Host, node: str, port: int) -> str:
    gpus = plan.gpu_count(node)
    return (
        f"NodeName={node} NodeHostname={host.name} NodeAddr=127.0.0.1 Port={port} CPUs={plan.cpus_per_node} "
        f"RealMemory={plan.memory_per_node}" + (f" Gres=gpu:{plan.gpu_type}:{gpus}" if gpus else "")
    )


def _partition_lines(plan: LabPlan) -> list[str]:
    """`debug` has low limits on purpose: a longer job waits there with the reason PartitionTimeLimit."""
    lines = [
        "PartitionName=cpu Nodes=ALL Default=YES DefaultTime=01:00:00 MaxTime=1-00:00:00 State=UP",
        "PartitionName=debug Nodes=ALL DefaultTime=00:01:00 MaxTime=00:05:00 MaxNodes=1 State=UP",
    ]
    with_gpus = [node for node in plan.node_names if plan.gpu_count(node)]
    if with_gpus:
        nodes = ",".join(with_gpus)
        lines.append(f"PartitionName=gpu Nodes={nodes} DefaultTime=01:00:00 MaxTime=1-00:00:00 State=UP")
    return lines


def gres_conf(plan: LabPlan, place: LabPaths) -> str:
    """gres.conf: which device files are the GPUs of which node. Empty if no node has any."""
    lines = []
    for node in plan.node_names:
        files = plan.gpus_of(node)
        if not plan.real_gpus and plan.gpus_per_node:
            last = plan.gpus_per_node - 1
            files = (f"{place.stand_ins}/gpu{f'[0-{last}]' if last else '0'}",)
        lines += [f"NodeName={node} Name=gpu Type={plan.gpu_type} File={file}" for file in files]
    return "".join(f"{line}\n" for line in lines)


def task_prolog(plan: LabPlan, place: LabPaths, module_definition: str | None) -> str:
    """The script that slurmstepd runs before each task; the task gets what it prints as `export NAME=VALUE`.

    `module_definition` is the file that defines `module` for bash, None if there is none.
    """
    lines = [
        f"echo 'export {MARK_VARIABLE}={place.directory}'",
        f'case "$PATH" in {place.programs}:*) ;; *) echo "export PATH={place.programs}:$PATH" ;; esac',
        *(_unless_set(name, value) for name, value in _OPEN_MPI.items()),
    ]
    if module_definition is not None:
        # A job script is a bash that is neither a login shell nor interactive: BASH_ENV is all that it reads.
        lines.append(_unless_set("BASH_ENV", module_definition))
        lines.append(
            f'case ":${{MODULEPATH:-}}:" in *:{place.modulefiles}:*) ;; '
            f'*) echo "export MODULEPATH={place.modulefiles}${{MODULEPATH:+:$MODULEPATH}}" ;; esac'
        )
    if plan.real_gpus:
        lines.append(_real_devices(plan))
    return "\n".join(["#!/bin/sh", _MARK, *lines]) + "\n"


def _real_devices(plan: LabPlan) -> str:
    """Slurm counts the GPUs of each node from 0, CUDA those of the machine: n2's first may be the machine's second.

    They are translated only if slurmstepd has just set CUDA_VISIBLE_DEVICES: for a job or a step that has GPUs.
    """
    cases = []
    for node in plan.node_names:
        numbers = " ".join(re.sub(r"^.*\D", "", file) for file in plan.gpus_of(node))
        cases.append(f"    {node}) set -- {numbers or 'none'} ;;")
    return "\n".join(
        [
            'if [ -n "${SLURM_STEP_GPUS:-${SLURM_JOB_GPUS:-}}" ] && [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then',
            '    case "$SLURMD_NODENAME" in',
            *cases,
            "    esac",
            "    devices=",
            '    for index in $(echo "$CUDA_VISIBLE_DEVICES" | tr , " "); do',
            '        eval "device=\\${$((index + 1))}"',
            "        devices=$devices${devices:+,}$device",
            "    done",
            '    echo "export CUDA_VISIBLE_DEVICES=$devices"',
            "fi",
        ]
    )


def _unless_set(name: str, value: str) -> str:
    return f'[ -n "${{{name}:-}}" ] || echo {shlex.quote(f"export {name}={value}")}'


def bashrc(plan: LabPlan, place: LabPaths, module_definition: str | None) -> str:
    """The start-up file of `ctk lab shell`: the user's own file first, then the lab, and its name in the prompt."""
    lines = ["[ ! -r ~/.bashrc ] || . ~/.bashrc", f"export SLURM_CONF={place.slurm_conf}"]
    if module_definition is not None:
        lines.append(f"type module >/dev/null 2>&1 || . {shlex.quote(module_definition)}")
        lines.append(f"module use {place.modulefiles}")
    return "\n".join([_MARK, *lines, f'PS1="(lab {plan.name}) $PS1"']) + "\n"


def shell_command(shell: str | None, place: LabPaths) -> list[str]:
    """How to start a user's shell, `$SHELL`; a bash reads the lab's own start-up file."""
    if shell is not None and shell.endswith("/bash"):
        return [shell, "--rcfile", str(place.bashrc)]
    return [shell or "/bin/sh"]


def shell_text(environment: dict[str, str]) -> str:
    """Assignments of these variables for `eval` in a POSIX shell."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
