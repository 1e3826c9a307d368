"""The scheduler's reasons in plain words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler.reasons import is_held, reason_words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("None", ""),
        ("", ""),
        ("(Priority)", "jobs with a higher priority come first"),
        (
            "ReqNodeNotAvail, UnavailableNodes:n[1-3]",
            "a required node is down, drained or reserved (UnavailableNodes:n[1-3])",
        ),
        ("launch failed requeued held", "held because it could not be started; `scontrol release JOB` tries again"),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_reason_of_slurm(reason: str, words: str) -> None:
    assert reason_words("slurm", reason) == words


def test_reasons_that_hold_a_job() -> None:
    assert is_held("JobHeldUser")
    assert is_held("(launch failed requeued held)")
    assert not is_held("Priority")


@given(st.text())
def test_any_reason_has_words(reason: str) -> None:
    reason_words("slurm", reason)
