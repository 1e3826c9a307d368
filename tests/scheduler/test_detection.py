"""From the output of a scheduler's programs to a profile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler import detection
from toolkit.scheduler.detection import Detected, Queue, comments, profile_from, profile_name, seconds_of
from toolkit.scheduler.grid_engine import parse_qhost
from toolkit.scheduler.profile_text import profile_text
from toolkit.scheduler.profiles import GpuType, Partition
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.slurm_nodes import parse_partitions
from toolkit.scheduler.states import HostFacts

# Slurm 22.05, `scontrol show partition --oneliner` of the practice cluster, shortened.
SCONTROL = """\
PartitionName=cpu AllowGroups=ALL Default=YES QoS=N/A DefaultTime=01:00:00 MaxNodes=UNLIMITED MaxTime=1-00:00:00 \
MinNodes=0 MaxCPUsPerNode=UNLIMITED Nodes=n[1-2] State=UP MaxMemPerNode=UNLIMITED
PartitionName=debug AllowGroups=ALL Default=NO QoS=N/A DefaultTime=NONE MaxNodes=1 MaxTime=00:05:00 MinNodes=0 \
MaxCPUsPerNode=2 Nodes=n1 State=UP MaxMemPerNode=8000
PartitionName=old AllowGroups=ALL Default=NO MaxNodes=1 MaxTime=UNLIMITED MinNodes=4 Nodes=n1 State=DOWN
"""
HOSTS = (
    HostFacts("n1", 4, 16_000, 2, "tesla", partitions=("cpu", "debug")),
    HostFacts("n2", 8, 32_000, 4, "a100", partitions=("cpu",)),
)


def test_slurm_partitions_with_the_largest_of_their_nodes() -> None:
    queues = detection.slurm_queues(parse_partitions(SCONTROL))
    found = profile_from(Detected(Scheduler.SLURM, ("sinfo",), queues, HOSTS), Path("x/mine.toml"), "2026-11-23")
    assert found.gpu_types == (GpuType("a100"), GpuType("tesla"))
    assert found.partitions == (
        Partition(
            *("cpu", True, "", 86_400, 3600, None, 2, 8, 32_000 << 20, 4),
            gpu_types=("a100", "tesla"),
        ),
        Partition(*("debug", False, "", 300, None, None, 1, 2, 8000 << 20, 2), gpu_types=("tesla",)),
    )
    assert (found.name, found.checked, found.sources) == ("mine", "2026-11-23", ("sinfo on a host of the cluster",))


def test_names_that_no_profile_can_hold_are_left_out() -> None:
    hosts = (HostFacts("n1", 4, gpus=1, gpu_type="a b", partitions=("ok",)), HostFacts("n2", 4, gpu_type="1g.10gb"))
    found = Detected(Scheduler.SLURM, ("sinfo",), (Queue("ok"), Queue("a b"), Queue("a,b"), Queue("")), hosts)
    profile = profile_from(found, Path("mine.toml"), "2026-11-23")
    assert [partition.name for partition in profile.partitions] == ["ok"]
    assert profile.gpu_types == (GpuType("1g.10gb"),)
    assert profile.partitions[0].gpu_types == ()


def test_default_time_above_the_limit_is_the_limit() -> None:
    found = Detected(
        Scheduler.SLURM, ("sinfo",), (Queue("a", max_time=60, default_time=90), Queue("b", max_time=60)), ()
    )
    profile = profile_from(found, Path("mine.toml"), "2026-11-23")
    assert [partition.default_time for partition in profile.partitions] == [60, None]


def test_slurm_settings_and_accounts() -> None:
    text = "Configuration data as of 2026\nClusterName             = ctk-lab\nMaxArraySize            = 1001\n"
    assert detection.slurm_settings(text)["MaxArraySize"] == "1001"
    assert detection.slurm_settings(text)["ClusterName"] == "ctk-lab"
    assert detection.slurm_accounts("lab42\nlab42\n\nphysics\n") == ("lab42", "physics")


# OpenPBS 23.06 and Torque 6 print the same lines, indented by four blanks.
QSTAT = """\
Queue: workq
    queue_type = Execution
    total_jobs = 0
    resources_max.walltime = 24:00:00
    resources_max.nodect = 8
    resources_default.walltime = 01:00:00
    enabled = True
    started = True

Queue: route
    queue_type = Route
    route_destinations = workq
    enabled = True

Queue: closed
    queue_type = Execution
    enabled = False
"""


# Grid Engine 8.1.9, `qconf -sq all.q` and `qconf -sp smp`, shortened.
QCONF = """\
qname                 all.q
hostlist              @allhosts
slots                 4
pe_list               make smp \\
                      mpi
s_rt                  INFINITY
h_rt                  24:00:00,[n2=48:00:00]
"""


def test_grid_engine_queues() -> None:
    assert detection.grid_engine_queue(QCONF) == Queue("all.q", False, 86_400, cores=4)
    assert detection.grid_engine_table(QCONF)["pe_list"] == "make smp mpi"
    assert detection.grid_engine_queue(
        QCONF.replace("24:00:00,[n2=48:00:00]", "INFINITY").replace("4\n", "1,[n1=8]\n")
    ) == Queue("all.q")
    assert detection.grid_engine_queue("error: no such queue") is None


def test_grid_engine_requests_of_cores_and_gpus() -> None:
    environments = [
        {"pe_name": "mpi", "allocation_rule": "$round_robin"},
        {"pe_name": "orte", "allocation_rule": "$pe_slots"},
        {"pe_name": "smp", "allocation_rule": "$pe_slots"},
    ]
    found = detection.grid_engine_environments(environments)
    assert found is not None
    assert found.text == "-pe smp {slots}"
    assert detection.grid_engine_environments(environments[:1]) is None
    complexes = """\
#name  shortcut  type  relop requestable consumable default  urgency
#-------------------------------------------------------------------
arch   a         RESTRING ==  YES         NO         NONE     0
gpu    gpu       INT   <=    YES         YES        0        0
"""
    for consumable, value in (("YES", "slot_gpus"), ("JOB", "count")):
        gpus = detection.grid_engine_gpus(complexes.replace("YES         YES", f"YES         {consumable}"))
        assert gpus is not None
        assert gpus.text == f"-l gpu={{{value}}}"
    assert detection.grid_engine_gpus(complexes.replace("YES         YES", "YES         NO")) is None
    assert detection.grid_engine_gpus("") is None


@pytest.mark.parametrize(
    ("values", "gpus"),
    [("gpu=4,slots=8", 4), ("slots=8, ngpus=2", 2), ("gpu=2.000000", 2), ("slots=8", None), ("NONE", None),
     ("gpu=x", None), ("gpu=.", None)],
)  # fmt: skip
def test_gpus_that_a_host_of_grid_engine_has(values: str, gpus: int | None) -> None:
    assert detection.grid_engine_host_gpus(f"hostname n1\ncomplex_values   {values}\nuser_lists NONE\n") == gpus


QHOST = """\
HOSTNAME                ARCH         NCPU NSOC NCOR NTHR  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS
----------------------------------------------------------------------------------------------
global                  -               -    -    -    -     -       -       -       -       -
n1                      lx-amd64        8    1    4    8  0.10   15.6G    2.0G     0.0     0.0
    Host Resource(s):      gc:gpu=2.000000
   all.q                BIP   0/0/4
"""


def test_grid_engine_hosts_belong_to_their_queues() -> None:
    queue = detection.grid_engine_queue(QCONF)
    assert queue is not None
    found = Detected(Scheduler.GRID_ENGINE, ("qconf", "qhost"), (queue,), parse_qhost(QHOST))
    (partition,) = profile_from(found, Path("sge.toml"), "2026-11-23").partitions
    assert (partition.name, partition.max_nodes, partition.cores, partition.gpus) == ("all.q", 1, 4, 2)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-00:00:00", 86_400),
        ("24:00:00", 86_400),
        ("3600", 3600),
        ("UNLIMITED", None),
        ("INFINITY", None),
        ("NONE", None),
        ("", None),
        ("soon", None),
        (None, None),
        ("0", None),
    ],
)
def test_limits_of_every_scheduler(text: str | None, seconds: int | None) -> None:
    assert seconds_of(text) == seconds


def test_name_of_the_cluster_as_a_file_can_have_it() -> None:
    def named(name: str | None) -> str:
        return profile_name(Detected(Scheduler.SLURM, (), (), (), name=name))

    assert [named("ctk-lab"), named("My Cluster/1"), named(None), named("日本")] == [
        *("ctk-lab", "my-cluster-1", "slurm", "slurm")
    ]


def test_comments_name_what_a_scheduler_does_not_know_and_the_accounts() -> None:
    found = Detected(Scheduler.SLURM, ("sinfo", "sacctmgr"), (), (), notes=("Your accounts: lab42.",))
    text = profile_text(profile_from(found, Path("mine.toml"), "2026-11-23"), comments(found))
    assert "from sinfo, sacctmgr" in text
    for words in ("Your accounts: lab42.", "internet = false", "driver = "):
        assert f"# {words}" in text or f"#   {words}" in text


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert detection.grid_engine_queue(text) is None or "qname" in text
    assert isinstance(detection.slurm_settings(text), dict)
    assert detection.grid_engine_gpus(text) is None or "gpu" in text.lower()
