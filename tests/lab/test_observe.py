"""What Slurm prints about nodes and finished jobs, and what is read from it."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.lab.observe import parse_finished, parse_node

# As scontrol and jobcomp/filetxt of Slurm 22.05.8 wrote them.
MIXED = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=1 CPUEfctv=4 CPUTot=4 CPULoad=1.31 AvailableFeatures=(null) "
    "ActiveFeatures=(null) Gres=gpu:tesla:2 GresDrain=N/A GresUsed=gpu:tesla:1(IDX:0) NodeAddr=127.0.0.1 "
    "NodeHostName=vm Port=20586 Version=22.05.8 OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=16000 "
    "AllocMem=2000 FreeMem=16359 Sockets=4 Boards=1 State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A "
    "MCS_label=N/A Partitions=cpu,debug,gpu  BootTime=2026-11-21T04:01:47 SlurmdStartTime=2026-11-21T05:18:07 "
    "LastBusyTime=2026-11-21T05:18:07 CfgTRES=cpu=4,mem=16000M,billing=4 AllocTRES=cpu=1,mem=2000M CapWatts=n/a"
)
DOWN = (
    "NodeName=n2 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=N/A AvailableFeatures=(null) Gres=(null) "
    "GresDrain=N/A GresUsed=N/A NodeAddr=127.0.0.1 State=DOWN+NOT_RESPONDING ThreadsPerCore=1 BootTime=None "
    "SlurmdStartTime=None Reason=Not responding [slurm@2026-11-21T05:25:39]"
)
JOB = (
    "JobId={number} UserId=ada(1001) GroupId=ada(1001) Name={name} JobState={state} Partition=cpu TimeLimit=60 "
    "StartTime=2026-11-21T05:18:09 EndTime={ended} NodeList={nodes} NodeCnt=1 ProcCnt=1 WorkDir={directory} "
    "ReservationName= Tres=cpu=1,mem=2000M,node=1,billing=1 Account= QOS= WcKey= Cluster=unknown "
    "SubmitTime=2026-11-21T05:18:07 EligibleTime=2026-11-21T05:18:09 {array}DerivedExitCode=0:0 ExitCode={exit} "
)
PLAIN = {
    "number": "4",
    "name": "a",
    "state": "COMPLETED",
    "ended": "2026-11-21T05:18:11",
    "nodes": "n[1-4]",
    "directory": "/home/ada",
    "array": "",
    "exit": "0:0",
}


def test_a_node_that_works() -> None:
    node = parse_node(MIXED)
    assert node is not None
    assert (node.name, node.state, node.responds, node.reason) == ("n1", "mixed", True, "")
    assert (node.cpus, node.cpus_used, node.gpus, node.gpus_used) == (4, 1, 2, 1)
    assert node.slurmd_started == datetime(2026, 11, 21, 5, 18, 7)


def test_a_node_that_is_down() -> None:
    node = parse_node(DOWN)
    assert node is not None
    assert (node.name, node.state, node.responds) == ("n2", "down+not_responding", False)
    assert (node.gpus, node.gpus_used, node.slurmd_started) == (0, 0, None)
    assert node.reason == "Not responding [slurm@2026-11-21T05:25:39]"


@pytest.mark.parametrize("line", ["", "slurm_load_node error: Unable to contact slurm controller"])
def test_a_line_without_a_node_is_none(line: str) -> None:
    assert parse_node(line) is None


def test_a_completed_job() -> None:
    job = parse_finished(JOB.format(**PLAIN))
    assert job is not None
    assert (job.job, job.number, job.name, job.user, job.partition) == ("4", 4, "a", "ada", "cpu")
    assert (job.state, job.exit_status, job.signal, job.nodes) == ("COMPLETED", 0, 0, "n[1-4]")
    assert (job.submitted, job.ended) == (datetime(2026, 11, 21, 5, 18, 7), datetime(2026, 11, 21, 5, 18, 11))
    assert job.directory == "/home/ada"


def test_an_array_task_has_the_array_job_number() -> None:
    job = parse_finished(JOB.format(**{**PLAIN, "number": "5", "array": "ArrayJobId=3 ArrayTaskId=1 ", "exit": "3:0"}))
    assert job is not None
    assert (job.job, job.number, job.exit_status) == ("3_1", 5, 3)


def test_a_job_that_was_cancelled_before_it_ran_has_no_nodes() -> None:
    job = parse_finished(JOB.format(**{**PLAIN, "state": "CANCELLED", "nodes": "(null)", "ended": "Unknown"}))
    assert job is not None
    assert (job.nodes, job.ended) == ("", None)


words = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)


@given(name=words, directory=words.map(lambda text: f"/{text}"), status=st.integers(0, 255), signal=st.integers(0, 64))
def test_any_name_and_directory_is_parsed(name: str, directory: str, status: int, signal: int) -> None:
    job = parse_finished(JOB.format(**{**PLAIN, "name": name, "directory": directory, "exit": f"{status}:{signal}"}))
    assert job is not None
    assert (job.name, job.directory, job.exit_status, job.signal) == (name, directory, status, signal)


@given(st.text())
def test_any_other_line_is_none(line: str) -> None:
    assert parse_finished(line) is None
