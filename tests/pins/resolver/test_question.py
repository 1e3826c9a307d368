"""A question to the resolver."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import TORCH
from toolkit.pins.resolver.question import Question, compile_lines
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.index.uv import Uv


@pytest.mark.index
def test_error_omits_warnings_of_uv(uv: Uv, refusing_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{refusing_server}/404/simple")
    monkeypatch.setenv("UV_INDEX_URL", f"{refusing_server}/404/simple")  # uv warns: it is deprecated
    done = compile_lines(uv, Question(TORCH, ("mine",), build_constraints=("setuptools<81 ; python_version < '3'",)))
    with pytest.raises(ProgramFailed) as raised:
        done.require("asking who requires whom")
    assert "mine was not found" in " ".join(raised.value.last_lines)
    assert not [line for line in raised.value.last_lines if "warning" in line or "does not contain" in line]


def test_files_of_a_resolver_run_that_was_killed_are_removed_by_the_next(uv: Uv, tmp_path: Path) -> None:
    program, mine = tmp_path / "uv", replace(uv, scratch=tmp_path / "tmp", program=str(tmp_path / "uv"))
    left = mine.scratch / f".ctk-work-{socket.gethostname()}-killed"
    left.mkdir(mode=0o700, parents=True)
    (left / "lock").touch()
    program.write_text('#!/bin/sh\nls -d "$PWD/packages.txt" "$TMPDIR"\n')
    program.chmod(0o755)
    seen = compile_lines(mine, Question(TORCH, ("mine",))).stdout.split()
    assert [line.startswith(f"{mine.scratch}/.ctk-work-") for line in seen] == [True, True]
    assert list(mine.scratch.iterdir()) == []


def test_empty_files_are_not_passed_to_uv(uv: Uv, tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    asked = compile_lines(replace(uv, program=str(program)), Question(TORCH, ("mine",))).stdout
    assert "constraints.txt" not in asked
    assert "excludes.txt" not in asked
    more = Question(TORCH, ("mine",), constraints=("a<1",), build_constraints=("b<1",))
    asked = compile_lines(replace(uv, program=str(program)), more, excludes=["c"]).stdout
    assert "-c constraints.txt --excludes excludes.txt" in asked
    assert "--build-constraints build-constraints.txt" in asked
