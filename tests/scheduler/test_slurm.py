"""What Slurm prints about jobs, and what is read from it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler.slurm import exit_code, job_state, parse_finished, parse_sacct, parse_scontrol, parse_squeue
from toolkit.scheduler.states import State

# As Slurm 22.05.8 wrote them.
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
SQUEUE = """5_[1-3%1]|PENDING|JobArrayTaskLimit||arr
7|PENDING|DependencyNeverSatisfied||a|b
4|PENDING|JobHeldUser||held
5_0|RUNNING|None|n2|arr
"""
SCONTROL = """JobId=1 JobName=ok UserId=root(0) JobState=COMPLETED Reason=None ExitCode=0:0 NodeList=n1 BatchHost=n1
JobId=2 JobName=three UserId=root(0) JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0 NodeList=n1
JobId=3 JobName=lost UserId=root(0) JobState=FAILED Reason=JobLaunchFailure ExitCode=0:53 NodeList=n2
JobId=9 ArrayJobId=5 ArrayTaskId=0 ArrayTaskThrottle=1 JobState=RUNNING Reason=None ExitCode=0:0 NodeList=n2
JobId=6 JobName=kill JobState=CANCELLED Reason=None ExitCode=0:15 NodeList=n2
JobId=8 JobName=limit JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15 NodeList=n2
JobId=5 ArrayJobId=5 ArrayTaskId=1-3%1 JobState=PENDING Reason=JobArrayTaskLimit ExitCode=0:0 NodeList=
"""
# The columns of sacct(1), --parsable2.
SACCT = """12|COMPLETED|0:0|None|n1
12.batch|COMPLETED|0:0||n1
13|CANCELLED by 1000|0:15|None|n1
14_2|OUT_OF_MEMORY|0:125|OutOfMemory|n2
15|NODE_FAIL|1:0|NodeDown|n3
"""


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


def test_queue_of_squeue() -> None:
    states = parse_squeue(SQUEUE)
    assert [(state.job, state.state) for state in states] == [
        ("5_[1-3%1]", State.PENDING),
        ("7", State.PENDING),
        ("4", State.HELD),
        ("5_0", State.RUNNING),
    ]
    assert states[1].reason == "waits for a job that failed, and will never start; cancel it"
    assert states[3].nodes == "n2"
    assert states[3].exit_status is None


def test_jobs_of_scontrol() -> None:
    states = {state.job: state for state in parse_scontrol(SCONTROL)}
    assert {job: state.state for job, state in states.items()} == {
        "1": State.COMPLETED,
        "2": State.FAILED,
        "3": State.FAILED,
        "5_0": State.RUNNING,
        "6": State.CANCELLED,
        "8": State.TIMED_OUT,
        "5_[1-3%1]": State.PENDING,
    }
    assert (states["2"].exit_status, states["2"].signal) == (3, None)
    assert (states["6"].exit_status, states["6"].signal) == (0, 15)


def test_job_whose_log_could_not_be_opened_says_so() -> None:
    lost = parse_scontrol(SCONTROL)[2]
    assert "the directory of its log does not exist" in lost.reason


def test_jobs_of_sacct_without_their_steps() -> None:
    states = parse_sacct(SACCT)
    assert [(state.job, state.state) for state in states] == [
        ("12", State.COMPLETED),
        ("13", State.CANCELLED),
        ("14_2", State.OUT_OF_MEMORY),
        ("15", State.NODE_FAILED),
    ]


def test_unknown_state_is_not_final_and_is_named() -> None:
    state = job_state("1", "POWERING_UP_NODE")
    assert not state.state.is_final
    assert "POWERING_UP_NODE" in state.reason


@pytest.mark.parametrize(
    ("text", "found"), [("3:0", (3, 0)), ("0:53", (0, 53)), ("", (None, None)), ("x", (None, None))]
)
def test_exit_code(text: str, found: tuple[int | None, int | None]) -> None:
    assert exit_code(text) == found


@given(st.text())
def test_any_other_text_is_parsed(text: str) -> None:
    parse_squeue(text)
    parse_scontrol(text)
    parse_sacct(text)
    exit_code(text)


# ---- What a real Slurm 22.05.8 printed, with another user and other paths

_PRINTED = Path(__file__).parent / "fixtures/slurm-22.05.8"


def test_jobs_of_a_real_scontrol() -> None:
    states = {state.job: state for state in parse_scontrol((_PRINTED / "scontrol-job.txt").read_text())}
    assert {job: (state.state, state.exit_status, state.signal) for job, state in states.items()} == {
        "1": (State.TIMED_OUT, 0, 15),
        "2": (State.COMPLETED, 0, None),
        "3": (State.FAILED, 3, None),
        "4": (State.FAILED, 0, 53),
        "5": (State.HELD, None, None),
        "6": (State.RUNNING, None, None),
        "7_0": (State.RUNNING, None, None),
        "8": (State.CANCELLED, 0, 15),
        "7_[3,6,9%1]": (State.PENDING, None, None),
        "10": (State.PENDING, None, None),
    }
    assert states["6"].nodes == "n[2-3]"
    assert "its log" in states["4"].reason


def test_jobs_of_a_real_squeue() -> None:
    states = parse_squeue((_PRINTED / "squeue.txt").read_text())
    assert [(state.job, state.state, state.nodes) for state in states] == [
        ("7_[3,6,9%1]", State.PENDING, ""),
        ("5", State.HELD, ""),
        ("6", State.RUNNING, "n[2-3]"),
        ("7_0", State.RUNNING, "n2"),
        ("10", State.PENDING, ""),
        ("1", State.RUNNING, "n1"),
    ]
