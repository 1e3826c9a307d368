"""What OpenPBS and Torque print, and what is read from it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler.pbs import (
    mebibytes,
    parse_nodes_xml,
    parse_qstat_json,
    parse_qstat_xml,
    submitted_job,
)
from toolkit.scheduler.pbs_site import parse_vnodes
from toolkit.scheduler.states import HostFacts, JobState, State
from toolkit.support.errors import ProgramFailed


def one(**attributes: Any) -> JobState:
    (state,) = parse_qstat_json(json.dumps({"timestamp": 1, "pbs_version": "23.06.06", "Jobs": {"1.pbs1": attributes}}))
    return state


# The attributes and values as seen with OpenPBS 23.06 (2026-11-21).
@pytest.mark.parametrize(
    ("attributes", "state", "reason"),
    [
        ({"job_state": "Q", "comment": "Not Running: Insufficient amount of resource: ngpus"}, State.PENDING, "Insuff"),
        (
            {"job_state": "Q", "comment": "Can Never Run: Insufficient amount of resource: gpu_type (h100 != a100)"},
            State.PENDING,
            "it can never run: Insuff",
        ),
        ({"job_state": "H"}, State.HELD, ""),
        ({"job_state": "R", "exec_host": "n1/0*4+n2/0*4"}, State.RUNNING, ""),
        ({"job_state": "E"}, State.RUNNING, "ending"),
        ({"job_state": "F", "Exit_status": 0, "Stageout_status": 1}, State.COMPLETED, ""),
        ({"job_state": "F", "Exit_status": 0, "Stageout_status": 0}, State.COMPLETED, "could not copy its output"),
        ({"job_state": "F", "Exit_status": 3}, State.FAILED, "nonzero"),
        ({"job_state": "F", "Exit_status": -29}, State.TIMED_OUT, "time limit"),
        ({"job_state": "F", "Exit_status": -27}, State.OUT_OF_MEMORY, "memory"),
        ({"job_state": "F", "Exit_status": 271}, State.CANCELLED, "qdel"),
        ({"job_state": "F", "Exit_status": 267}, State.FAILED, "signal 11"),
        ({"job_state": "F"}, State.CANCELLED, "before it ran"),
        ({"job_state": "?"}, State.RUNNING, "does not know"),
    ],
)
def test_job_of_openpbs(attributes: dict[str, Any], state: State, reason: str) -> None:
    found = one(**attributes)
    assert found.state is state
    assert reason in found.reason


def test_nodes_of_a_job_are_named_once() -> None:
    assert one(job_state="R", exec_host="n1/0*4+n1/1+n2/0*4").nodes == "n1+n2"


@pytest.mark.parametrize(
    ("inner", "state"),
    [
        ("<job_state>Q</job_state>", State.PENDING),
        ("<job_state>R</job_state><exec_host>n1/0+n1/1</exec_host>", State.RUNNING),
        ("<job_state>C</job_state><exit_status>0</exit_status>", State.COMPLETED),
        ("<job_state>C</job_state><exit_status>-11</exit_status>", State.TIMED_OUT),
        ("<job_state>C</job_state><exit_status>-10</exit_status>", State.OUT_OF_MEMORY),
        ("<job_state>C</job_state><exit_status>271</exit_status>", State.CANCELLED),
        ("<job_state>C</job_state><exit_status>3</exit_status>", State.FAILED),
    ],
)
def test_job_of_torque(inner: str, state: State) -> None:
    (found,) = parse_qstat_xml(f"<Data><Job><Job_Id>7.head</Job_Id>{inner}</Job></Data>")
    assert (found.job, found.state) == ("7.head", state)


def test_nodes_of_torque() -> None:
    text = (
        "<Data><Node><name>n1</name><state>free</state><np>8</np>"
        "<status>physmem=16384000kb,ncpus=8</status><gpus>2</gpus></Node></Data>"
    )
    assert parse_nodes_xml(text) == (HostFacts("n1", 8, 16000, 2),)


@pytest.mark.parametrize("text", ["<Data", "<!DOCTYPE x><Data/>"])
def test_other_xml_is_a_failed_program(text: str) -> None:
    with pytest.raises(ProgramFailed):
        parse_qstat_xml(text)


def test_no_jobs_are_no_text_in_torque() -> None:
    assert parse_qstat_xml("") == ()


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("12.pbs1\n", "12.pbs1"),
        ("12[].pbs1\n", "12[].pbs1"),
        ("warning\n7.head.example.org", "7.head.example.org"),
        ("", None),
    ],
)
def test_number_that_qsub_prints(text: str, job: str | None) -> None:
    assert submitted_job(text) == job


@pytest.mark.parametrize(("text", "size"), [("16384kb", 16), ("2gb", 2048), ("1048576b", 1), ("", 0), ("many", 0)])
def test_mebibytes(text: str, size: int) -> None:
    assert mebibytes(text) == size


@given(st.text())
def test_any_text_is_parsed_or_is_a_failed_program(text: str) -> None:
    for parse in (parse_qstat_json, parse_vnodes, parse_qstat_xml, parse_nodes_xml):
        with contextlib.suppress(ProgramFailed):
            parse(text)
    submitted_job(text)
    mebibytes(text)
