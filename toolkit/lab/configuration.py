"""The texts that Slurm reads (slurm.conf, gres.conf, the task prolog): pure functions of a plan."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.lab.place import Place
    from toolkit.lab.plan import LabPlan

MARK = "# A practice cluster of ctk."  # tells a lab's slurm.conf from a site's

# Virtual nodes share one kernel: Open MPI would take ranks on two nodes for neighbours and join them through one
# shared memory segment, which ends in SIGSEGV. Over loopback TCP they are the strangers that they play. Open MPI 5
# leaves out loopback unless it is named.
_OPEN_MPI = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}


@dataclass(frozen=True, slots=True)
class Host:
    """What a configuration has to know of the machine: its short host name, and who runs the daemons."""

    name: str
    user: str


def slurm_conf(plan: LabPlan, place: Place, host: Host, port: int) -> str:
    """The whole slurm.conf. The controller listens on `port`, the nodes on those that follow it.

    Source of every key: slurm.conf(5) of Slurm 22.05.
    """
    settings = {
        "ClusterName": f"ctk-{plan.name}",  # machine/foreign-cluster tells a lab from a site by it
        "SlurmctldHost": f"{host.name}(127.0.0.1)",
        "SlurmctldPort": port,
        "SlurmUser": host.user,
        "SlurmdUser": host.user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={place.munge_socket}",
        # Nobody outside this machine can knock.
        "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
        "StateSaveLocation": place.state,
        "SlurmdSpoolDir": place.spool("%n"),
        # Each node its own: PMIx of two nodes would make the same folder in one TmpFS, and the second job step dies.
        "TmpFS": place.temporary("%n"),
        "SlurmctldPidFile": place.folder / "slurmctld.pid",
        "SlurmdPidFile": place.folder / "slurmd.%n.pid",
        "SlurmctldLogFile": place.log("slurmctld"),
        "SlurmdLogFile": place.log("%n"),
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "TaskProlog": place.task_prolog,
        "MpiDefault": "none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": max(1, plan.memory_per_node // plan.cpus_per_node // 2),
        # Nodes may have more CPUs and memory than the machine.
        "SlurmdParameters": "config_overrides",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=2,bf_interval=5,bf_continue",
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": place.finished_jobs,
        "AccountingStorageType": "accounting_storage/none",
        "JobAcctGatherType": "jobacct_gather/none",
        # A dead node is noticed in this many seconds, its jobs run again, and it may come back.
        "SlurmdTimeout": 15,
        "JobRequeue": 1,
        "ReturnToService": 2,
        "KillWait": 10,
        "OverTimeLimit": 0,
        "MailProg": "/bin/true",
    }
    if _has_gpus(plan):
        settings["GresTypes"] = "gpu"
    lines = [MARK, *(f"{key}={value}" for key, value in settings.items())]
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
    """`debug` is small on purpose: a longer job waits there with the reason PartitionTimeLimit."""
    lines = [
        "PartitionName=cpu Nodes=ALL Default=YES DefaultTime=01:00:00 MaxTime=1-00:00:00 State=UP",
        "PartitionName=debug Nodes=ALL DefaultTime=00:01:00 MaxTime=00:05:00 MaxNodes=1 State=UP",
    ]
    with_gpus = [node for node in plan.node_names if plan.gpu_count(node)]
    if with_gpus:
        nodes = ",".join(with_gpus)
        lines.append(f"PartitionName=gpu Nodes={nodes} DefaultTime=01:00:00 MaxTime=1-00:00:00 State=UP")
    return lines


def gres_conf(plan: LabPlan, place: Place) -> str:
    """gres.conf: which device files are the GPUs of which node. Empty where no node has any."""
    lines = []
    for node in plan.node_names:
        files = plan.gpus_of(node)
        if not plan.real_gpus and plan.gpus_per_node:
            last = plan.gpus_per_node - 1
            files = (f"{place.stand_ins}/gpu{f'[0-{last}]' if last else '0'}",)
        lines += [f"NodeName={node} Name=gpu Type={plan.gpu_type} File={file}" for file in files]
    return "".join(f"{line}\n" for line in lines)


def task_prolog(place: Place, module_command: str | None) -> str:
    """The script that slurmstepd runs before each task; what it prints as `export NAME=VALUE` the task gets.

    `module_command` is the file that defines `module` for bash, None where there is none.
    """
    wanted = dict(_OPEN_MPI)
    lines = [
        f'[ -n "${{{name}:-}}" ] || echo {shlex.quote(f"export {name}={value}")}' for name, value in wanted.items()
    ]
    if module_command is not None:
        # A job script is a bash that is neither a login shell nor interactive: BASH_ENV is all that it reads.
        lines.append(_unless_set("BASH_ENV", module_command))
        lines.append(f'echo "export MODULEPATH={place.modulefiles}${{MODULEPATH:+:$MODULEPATH}}"')
    return "\n".join(["#!/bin/sh", MARK, *lines]) + "\n"


def _unless_set(name: str, value: str) -> str:
    return f'[ -n "${{{name}:-}}" ] || echo {shlex.quote(f"export {name}={value}")}'


def shell_text(environment: dict[str, str]) -> str:
    """What `eval` of a POSIX shell makes these variables of."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
