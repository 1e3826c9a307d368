"""What Grid Engine prints, and what is read from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler import detection
from toolkit.scheduler.detection import Queue
from toolkit.scheduler.grid_engine import (
    parse_details,
    parse_qacct,
    parse_qhost,
    parse_qstat,
    requested,
    submitted_job,
)
from toolkit.scheduler.states import State

# The columns of qstat(1) of Grid Engine 8.1.9; the messages as seen with it (2026-11-21).
QSTAT = """job-ID  prior   name  user  state submit/start at     queue  slots ja-task-ID
-----------------------------------------------------------------------------------------------------------------
      1 0.55500 sleeper    ada          r     11/21/2026 03:08:45 all.q@n1                           2
      2 0.55500 arr        ada          r     11/21/2026 03:08:45 all.q@n2                           1 1
      2 0.00000 arr        ada          qw    11/21/2026 03:08:45                                    1 2-5:1
      3 0.00000 lost       ada          Eqw   11/21/2026 03:08:49                                    1
      4 0.00000 held       ada          hqw   11/21/2026 03:08:49                                    1
      5 0.55500 gone       ada          dr    11/21/2026 03:08:49 all.q@n1                           1
      6 0.55500 stopped    ada          s     11/21/2026 03:08:49 all.q@n1                           1
"""
DETAILS = """==============================================================
job_number:                 3
owner:                      ada
cwd:                        /home/ada
hard resource_list:         h_rt=600,s_gpu=1
parallel environment:  smp range: 2
script_file:                x.sh
error reason    1:          11/21/2026 03:08:50 [1001:17569]: error: can't open output file "/no/out": No such file
scheduling info:            Job is in error state
==============================================================
job_number:                 4
"""
RECORD = """==============================================================
qname        all.q
hostname     n1
jobname      x
jobnumber    {job}
taskid       {task}
failed       {failed}
exit_status  {status}
"""
QHOST = """HOSTNAME                ARCH         NCPU NSOC NCOR NTHR NLOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS
----------------------------------------------------------------------------------------------
global                  -               -    -    -    -     -       -       -       -       -
n1                      lx-amd64        8    1    8    8  0.10   15.6G    2.2G     0.0     0.0
   hc:gpu=4.000000
   all.q                BIP   0/1/8
n2                      lx-amd64        8    1    8    8     -   15.6G       -     0.0       -
"""


def test_jobs_of_qstat() -> None:
    states = parse_qstat(QSTAT)
    assert [(state.job, state.state) for state in states] == [
        ("1", State.RUNNING),
        ("2.1", State.RUNNING),
        ("2.2-5:1", State.PENDING),
        ("3", State.FAILED),
        ("4", State.HELD),
        ("5", State.CANCELLED),
        ("6", State.RUNNING),
    ]
    assert [states[0].nodes, states[1].nodes, states[2].nodes] == ["n1", "n2", ""]
    assert states[6].reason == "suspended"


def test_error_state_has_the_reason_of_qstat_j() -> None:
    lost = parse_qstat(QSTAT, parse_details(DETAILS))[3]
    assert lost.reason == 'can\'t open output file "/no/out": No such file'


def test_requested_resources_of_a_job() -> None:
    assert requested(parse_details(DETAILS)["3"]) == {"h_rt": "600", "s_gpu": "1", "pe": "smp 2"}


def test_job_that_is_not_known_has_no_details() -> None:
    assert parse_details("Following jobs do not exist: \n1\n") == {}


@pytest.mark.parametrize(
    ("failed", "status", "state", "signal", "reason"),
    [
        ("0", 0, State.COMPLETED, None, ""),
        ("0", 3, State.FAILED, None, "nonzero"),
        ("26  : opening input/output file", 0, State.FAILED, None, "could not open its input or output file"),
        ("37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", 137, State.TIMED_OUT, 9, "limit"),
        ("100 : assumedly after job", 137, State.CANCELLED, 9, "qdel"),
        ("100 : assumedly after job", 139, State.FAILED, 11, "signal"),
        ("21  : in recognizing job", 0, State.NODE_FAILED, None, "host"),
        ("97  : something new", 0, State.FAILED, None, "something new"),
    ],
)
def test_finished_job_of_qacct(failed: str, status: int, state: State, signal: int | None, reason: str) -> None:
    (found,) = parse_qacct(RECORD.format(job=7, task="undefined", failed=failed, status=status))
    assert (found.job, found.state, found.exit_status, found.signal) == ("7", state, status, signal)
    assert reason in found.reason


def test_tasks_of_an_array_have_a_record_each() -> None:
    text = "".join(RECORD.format(job=7, task=task, failed="0", status=0) for task in (1, 2))
    assert [state.job for state in parse_qacct(text)] == ["7.1", "7.2"]


def test_hosts_of_qhost() -> None:
    n1, n2 = parse_qhost(QHOST)
    assert (n1.name, n1.cpus, n1.memory, n1.gpus, n1.usable, n1.partitions) == ("n1", 8, 15974, 4, True, ("all.q",))
    assert not n2.usable


@pytest.mark.parametrize(("text", "job"), [("12\n", "12"), ("12.1-5:1\n", "12"), ("", None), ("error", None)])
def test_number_that_qsub_prints(text: str, job: str | None) -> None:
    assert submitted_job(text) == job


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    parse_qstat(text)
    parse_details(text)
    parse_qacct(text)
    parse_qhost(text)
    submitted_job(text)


# ---- What a real Grid Engine 8.1.9 of Debian 12 printed, with other names of its host, its user and their directories

_PRINTED = Path(__file__).parent / "fixtures/grid-engine-8.1.9"


def printed(name: str) -> str:
    return (_PRINTED / f"{name}.txt").read_text()


def test_jobs_of_a_real_qstat() -> None:
    states = parse_qstat(printed("qstat"), parse_details(printed("qstat-j")))
    assert [(state.job, state.state, state.nodes) for state in states] == [
        ("1", State.RUNNING, "gpu-node1"),
        ("2.1", State.RUNNING, "gpu-node1"),
        ("4", State.PENDING, ""),
        ("5", State.FAILED, ""),
        ("2.3,5", State.PENDING, ""),
        ("3", State.HELD, ""),
    ]
    assert (states[3].reported, states[3].reason) == (
        "Eqw",
        'can\'t open output file "/home/anna/work/missing/out.txt": No such file or directory',
    )


def test_requests_of_a_real_qstat_j() -> None:
    found = parse_details(printed("qstat-j"))
    assert {job: requested(details) for job, details in found.items()} == {
        "1": {"gpu": "2", "h_rt": "600", "pe": "smp 2"},
        "2": {},
        "3": {},
        "5": {},
    }
    assert found["2"].fields["job-array tasks"] == "1-5:2"
    assert found["2"].fields["maximum concurrency"] == "1"
    assert {details.fields["cwd"] for details in found.values()} == {"/home/anna/work"}


def test_finished_jobs_of_a_real_qacct() -> None:
    states = {state.job: state for state in parse_qacct(printed("qacct"))}
    assert {job: (state.state, state.exit_status, state.signal) for job, state in states.items()} == {
        "9": (State.COMPLETED, 0, None),
        "7": (State.FAILED, 3, None),
        "8": (State.FAILED, 139, 11),
        "6": (State.TIMED_OUT, 137, 9),
        "1": (State.CANCELLED, 137, 9),
        "2.1": (State.COMPLETED, 0, None),
        "2.3": (State.COMPLETED, 0, None),
        "2.5": (State.FAILED, 1, None),
    }
    assert {state.nodes for state in states.values()} == {"gpu-node1"}


def test_host_of_a_real_qhost_while_a_job_uses_two_of_its_four_gpus() -> None:
    (host,) = parse_qhost(printed("qhost"))
    assert (host.name, host.cpus, host.memory, host.usable) == ("gpu-node1", 2, 24_064, True)
    assert host.partitions == ("all.q", "short.q")
    assert host.gpus == 2
    assert detection.grid_engine_host_gpus(printed("qconf-se")) == 4


def test_configuration_of_a_real_qconf() -> None:
    assert printed("qconf-sql").split() == ["all.q", "short.q"]
    assert detection.grid_engine_queue(printed("qconf-sq")) == Queue("short.q", max_time=60, cores=8)
    cores = detection.grid_engine_environments([detection.grid_engine_table(printed("qconf-sp"))])
    gpus = detection.grid_engine_gpus(printed("qconf-sc"))
    assert cores is not None
    assert gpus is not None
    assert (cores.text, gpus.text) == ("-pe smp {slots}", "-l gpu={count}")
