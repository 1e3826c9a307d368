"""What Slurm prints about nodes, partitions and the queue, and what is read from it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler import detection
from toolkit.scheduler.slurm_nodes import parse_gres, parse_node, parse_partitions, parse_queue, parse_sinfo, usable
from toolkit.scheduler.states import HostFacts

# As scontrol of Slurm 22.05.8 wrote them.
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
SINFO = """n1|idle|4|16000|gpu:tesla:2|cpu*
n1|idle|4|16000|gpu:tesla:2|debug
n2|mix|4|16000|gpu:tesla:2|cpu*
n3|down*|4|16000|(null)|cpu*
"""
PARTITION = (
    "PartitionName=debug AllowGroups=ALL Default=NO QoS=N/A DefaultTime=00:01:00 MaxNodes=1 MaxTime=00:05:00 "
    "MinNodes=0 Nodes=n[1-4] State=UP TotalCPUs=16\n"
    "PartitionName=cpu Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n[1-4]"
)


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


def test_nodes_of_sinfo_have_all_their_partitions() -> None:
    nodes = parse_sinfo(SINFO)
    assert nodes[0] == HostFacts("n1", 4, 16000, 2, "tesla", True, ("cpu", "debug"))
    assert [(node.name, node.usable, node.gpus) for node in nodes[1:]] == [("n2", True, 2), ("n3", False, 0)]


def test_partitions_have_their_limits() -> None:
    debug, cpu = parse_partitions(PARTITION)
    assert (debug.name, debug.is_default, debug.max_time, debug.max_nodes) == ("debug", False, "00:05:00", 1)
    assert (cpu.name, cpu.is_default, cpu.max_time, cpu.max_nodes) == ("cpu", True, None, None)


def test_queue_keeps_a_bar_in_a_name() -> None:
    (job,) = parse_queue("5_[1-3%1]|cpu|PENDING|0:00|(JobArrayTaskLimit)|a|b\n")
    assert (job.job, job.name, job.where) == ("5_[1-3%1]", "a|b", "(JobArrayTaskLimit)")


@pytest.mark.parametrize(
    ("gres", "found"),
    [
        ("gpu:tesla:2", (2, "tesla")),
        ("gpu:tesla:1(IDX:0)", (1, "tesla")),
        ("gpu:2", (2, None)),
        ("gpu:a100:4(S:0-1),shard:8", (4, "a100")),
        ("gpu:1g.10gb:7,gpu:a100:1", (8, "1g.10gb")),
        ("gpu:nvidia_h100_80gb_hbm3:8", (8, "nvidia_h100_80gb_hbm3")),
        ("(null)", (0, None)),
        ("craynetwork:4", (0, None)),
    ],
)
def test_gpus_of_a_node(gres: str, found: tuple[int, str | None]) -> None:
    assert parse_gres(gres) == found


@pytest.mark.parametrize(
    ("state", "can"), [("idle", True), ("mix", True), ("idle~", True), ("idle*", False), ("drng", False)]
)
def test_usable_state(state: str, can: bool) -> None:
    assert usable(state) is can


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    parse_sinfo(text)
    parse_partitions(text)
    parse_queue(text)
    parse_node(text)
    parse_gres(text)


# ---- What a real Slurm 22.05.8 printed

_PRINTED = Path(__file__).parent / "fixtures/slurm-22.05.8"


def printed(name: str) -> str:
    return (_PRINTED / f"{name}.txt").read_text()


def test_nodes_of_a_real_slurm() -> None:
    nodes = [parse_node(line) for line in printed("scontrol-node").splitlines()]
    assert [(node.name, node.state, node.cpus, node.cpus_used, node.gpus) for node in nodes if node] == [
        ("n1", "mixed", 4, 1, 2),
        ("n2", "mixed", 4, 3, 2),
        ("n3", "mixed", 4, 2, 2),
        ("n4", "idle", 4, 0, 2),
    ]
    found = parse_sinfo(printed("sinfo"))
    expected = [HostFacts(f"n{n}", 4, 16_000, 2, "tesla", True, ("cpu", "debug", "gpu")) for n in (1, 2, 3, 4)]
    assert list(found) == expected


def test_partitions_and_queue_of_a_real_slurm() -> None:
    partitions = parse_partitions(printed("scontrol-partition"))
    assert [(found.name, found.is_default, found.max_time, found.max_nodes) for found in partitions] == [
        ("cpu", True, "1-00:00:00", None),
        ("debug", False, "00:05:00", 1),
        ("gpu", False, "1-00:00:00", None),
    ]
    queue = {job.job: (job.name, job.partition, job.state, job.where) for job in parse_queue(printed("squeue-nodes"))}
    assert queue["10"] == ("a|b", "debug", "PENDING", "(PartitionTimeLimit)")
    assert queue["6"] == ("train", "cpu", "RUNNING", "n[2-3]")
    settings = detection.slurm_settings(printed("scontrol-config"))
    assert (settings["ClusterName"], settings["MaxArraySize"]) == ("site", "1001")
