"""States of jobs in neutral terms."""

from __future__ import annotations

from toolkit.scheduler.states import State, join_reasons


def test_final_states_are_those_after_which_a_job_does_not_run() -> None:
    assert {state for state in State if not state.is_final} == {State.PENDING, State.HELD, State.RUNNING}


def test_reasons_are_joined_without_the_empty_ones() -> None:
    assert join_reasons("a", "", "b") == "a; b"
