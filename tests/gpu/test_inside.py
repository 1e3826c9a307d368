"""A text that is run in a container: how its answer and its end are read. The runtime is a shell script."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.gpu.host import Vendor
from toolkit.gpu.inside import PASSED, Answer, Ending, asked, isolated_environment
from toolkit.runtime.engine import Runtime
from toolkit.support.errors import ProgramFailed

pytestmark = pytest.mark.slow


def answer(directory: Path, script: str, timeout: float = 20) -> Answer:
    program = directory / "apptainer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    runtime = Runtime(program, "apptainer", (1, 4, 5))
    with asked(runtime, Path("x.sif"), "pass", "mark:", vendor=Vendor.NVIDIA) as wait:
        return wait(timeout)


def test_answer_is_found_among_other_lines(tmp_path: Path) -> None:
    found = answer(tmp_path, """echo a message; echo ctk-inside; echo 'ctk-step:one'; echo 'mark:{"a": 1}'; echo end""")
    assert found == Answer({"a": 1}, True, Ending(0, None, "one", (), ("a message", "end")))


@pytest.mark.parametrize("status", [1, 255])
def test_container_that_does_not_start_is_an_error_with_its_last_lines(tmp_path: Path, status: int) -> None:
    with pytest.raises(ProgramFailed, match=rf"x\.sif could not be started \(status {status}\)") as caught:
        answer(tmp_path, f"echo 'FATAL: odd' >&2; exit {status}")
    assert (caught.value.code, caught.value.last_lines) == ("container-did-not-start", ("FATAL: odd",))
    with pytest.raises(ProgramFailed, match=r"could not be started within 1 s"):
        answer(tmp_path, "sleep 60", timeout=0.2)


def test_time_limit_and_signals_are_told(tmp_path: Path) -> None:
    found = answer(tmp_path, "echo ctk-inside; echo ctk-step:cuInit; sleep 60", timeout=0.3)
    assert (found.facts, found.ending.seconds, found.ending.step) == (None, 0.3, "cuInit")
    ended = answer(tmp_path, "echo ctk-inside; exit 139").ending
    assert (ended.signal, ended.seconds) == ("SIGSEGV", None)
    assert answer(tmp_path, "echo ctk-inside; exit 255").ending.signal is None


def test_limit_is_for_each_step_and_the_start_has_its_own(tmp_path: Path) -> None:
    steps = "sleep 1; echo ctk-inside; " + "".join(f"echo ctk-step:{step}; sleep 0.5; " for step in range(4))
    found = answer(tmp_path, steps + """echo 'mark:{"a": 1}'""", timeout=1.5)
    assert (found.facts, found.ending.seconds, found.ending.step) == ({"a": 1}, None, "3")
    assert answer(tmp_path, "echo ctk-inside; sleep 60", timeout=0.2).ending.seconds == 1


def test_processes_that_are_left_are_listed(tmp_path: Path) -> None:
    assert answer(tmp_path, "echo ctk-inside; echo ctk-left:worker").ending.left == ("worker",)


def test_image_without_python(tmp_path: Path) -> None:
    found = answer(tmp_path, "echo ctk-inside; exit 97")
    assert (found.facts, found.python) == (None, False)


def test_environment_has_what_chooses_gpus_and_nothing_else_of_the_user() -> None:
    environ = {
        "PATH": "/bin",
        "APPTAINER_NO_EVAL": "1",
        "APPTAINERENV_X": "1",
        "SINGULARITYENV_LD_PRELOAD": "x",
        "CUDA_VISIBLE_DEVICES": "",
    }
    made = isolated_environment(environ)
    assert "APPTAINERENV_X" not in made
    assert "APPTAINER_NO_EVAL" not in made, "the values are escaped for the evaluation"
    assert "SINGULARITYENV_LD_PRELOAD" not in made
    assert made["PATH"] == "/bin"
    assert (made["APPTAINERENV_CUDA_VISIBLE_DEVICES"], made["SINGULARITYENV_CUDA_VISIBLE_DEVICES"]) == ("", "")
    assert made["APPTAINERENV_PYTHONNOUSERSITE"] == "1"
    assert "CUDA_VISIBLE_DEVICES" in PASSED
