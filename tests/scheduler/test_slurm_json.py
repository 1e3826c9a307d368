"""The JSON of Slurm's programs in the forms of several releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler.slurm_json import number, parse_jobs, parse_nodes
from toolkit.scheduler.states import HostFacts, State
from toolkit.support.errors import ProgramFailed

# squeue-22.05.json and sinfo-22.05.json are what Slurm 22.05.8 printed, fewer keys; the others follow the documents
# of data_parser v0.0.40 to v0.0.42.
FIXTURES = Path(__file__).parent / "fixtures"


def stated(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def exit_code(status: int, signal: int = 0) -> dict[str, Any]:
    return {
        "status": ["SIGNALED" if signal else "SUCCESS"],
        "return_code": stated(status),
        "signal": {"id": stated(signal), "name": ""},
    }


def squeue_2311(job: int, states: list[str], reason: str = "None", **more: Any) -> dict[str, Any]:
    empty = {"array_job_id": stated(0), "array_task_id": stated(None), "array_task_string": "", "nodes": ""}
    return {"job_id": job, "job_state": states, "state_reason": reason, "exit_code": exit_code(0), **empty, **more}


def test_squeue_of_22_05() -> None:
    states = {state.job: state for state in parse_jobs((FIXTURES / "squeue-22.05.json").read_text())}
    assert {job: state.state for job, state in states.items()} == {
        "1": State.COMPLETED,
        "2": State.FAILED,
        "3": State.FAILED,
        "4": State.HELD,
        "5_0": State.RUNNING,
        "6": State.CANCELLED,
        "7": State.PENDING,
        "8": State.RUNNING,
        "5_[1-3%1]": State.PENDING,
    }
    assert (states["2"].exit_status, states["2"].signal) == (3, None)
    assert (states["3"].exit_status, states["3"].signal) == (0, 53)
    assert states["6"].signal == 15
    assert states["8"].nodes == "n[2-3]"


def test_squeue_of_23_11_and_later() -> None:
    jobs = [
        squeue_2311(1, ["PENDING"], "JobHeldUser"),
        squeue_2311(2, ["RUNNING", "COMPLETING"], nodes="n1"),
        squeue_2311(3, ["FAILED"], "NonZeroExitCode", exit_code=exit_code(3)),
        squeue_2311(9, ["TIMEOUT"], array_job_id=stated(5), array_task_id=stated(0), exit_code=exit_code(0, 15)),
        squeue_2311(5, ["PENDING"], array_job_id=stated(5), array_task_string="1-3%1"),
    ]
    states = parse_jobs(json.dumps({"meta": {"slurm": {"release": "24.05.1"}}, "jobs": jobs, "errors": []}))
    assert [(state.job, state.state) for state in states] == [
        ("1", State.HELD),
        ("2", State.RUNNING),
        ("3", State.FAILED),
        ("5_0", State.TIMED_OUT),
        ("5_[1-3%1]", State.PENDING),
    ]
    assert states[2].exit_status == 3
    assert states[3].signal == 15


@pytest.mark.parametrize("current", ["OUT_OF_MEMORY", ["OUT_OF_MEMORY"]])
def test_sacct_before_and_after_23_11(current: object) -> None:
    job = {
        "job_id": 14,
        "state": {"current": current, "reason": "OutOfMemory"},
        "exit_code": {"status": "SIGNALED", "return_code": 0, "signal": {"signal_id": 125, "name": ""}},
        "array": {"job_id": 12, "task_id": 2, "task": ""},
        "nodes": "n1",
    }
    (state,) = parse_jobs(json.dumps({"jobs": [job]}))
    assert (state.job, state.state, state.exit_status, state.signal) == ("12_2", State.OUT_OF_MEMORY, 0, 125)


def test_nodes_of_22_05() -> None:
    nodes = parse_nodes((FIXTURES / "sinfo-22.05.json").read_text())
    assert nodes[0] == HostFacts("n1", 4, 16000, 2, "tesla", True, ("cpu", "debug", "gpu"))


def test_nodes_of_23_11_and_later() -> None:
    def group(partition: str, state: str) -> dict[str, Any]:
        return {
            "node": {"state": [state]},
            "nodes": {"nodes": ["n1", "n2"]},
            "cpus": {"maximum": 4},
            "memory": {"maximum": 16000},
            "gres": {"total": "gpu:tesla:2"},
            "partition": {"name": partition},
        }

    nodes = parse_nodes(json.dumps({"sinfo": [group("cpu", "IDLE"), group("gpu", "IDLE")]}))
    assert nodes[1] == HostFacts("n2", 4, 16000, 2, "tesla", True, ("cpu", "gpu"))


@pytest.mark.parametrize(
    ("value", "found"),
    [(3, 3), (stated(3), 3), (stated(None), None), ({"infinite": True, "number": 1, "set": True}, None), ("3", None)],
)
def test_number_in_both_forms(value: object, found: int | None) -> None:
    assert number(value) == found


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"jobs": 1}', '{"jobs": [1]}'])
def test_other_text_is_a_failed_program(text: str) -> None:
    with pytest.raises(ProgramFailed):
        parse_jobs(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("job_id", "job_state", "state", "state_reason", "exit_code", "array", "array_job_id", "array_task_id", "nodes")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)))
def test_job_of_any_form_is_parsed(job: dict[str, Any]) -> None:
    assert len(parse_jobs(json.dumps({"jobs": [job]}))) == 1
