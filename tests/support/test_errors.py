"""Errors: the exit status and the code of each."""

from __future__ import annotations

import pytest

from toolkit.support.errors import CheckFailed, CtkError, MissingOnHost, ProgramFailed, WrongInput


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (CheckFailed, 1, "answer-is-no"),
        (WrongInput, 2, "wrong-input"),
        (MissingOnHost, 3, "missing-on-host"),
        (ProgramFailed, 4, "program-failed"),
    ],
)
def test_each_error_has_its_exit_status_and_a_code_that_can_be_more_exact(
    kind: type[CtkError], status: int, code: str
) -> None:
    error, exact = kind("what"), kind("what", code="disk-full", fix="do")
    assert (error.exit_status, error.code, error.fix, str(error)) == (status, code, None, "what")
    assert (exact.exit_status, exact.code, exact.fix) == (status, "disk-full", "do")
    assert kind.code == code
