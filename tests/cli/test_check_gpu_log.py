"""`ctk check-gpu --log` as a user meets it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.cli.conftest import PROGRAM, document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk

FALLBACK = (
    "I tensorflow/stream_executor/platform/default/dso_loader.cc:49] Successfully opened dynamic library libcudart\n"
    "E tensorflow/stream_executor/cuda/cuda_driver.cc:313] failed call to cuInit: UNKNOWN ERROR (303)\n"
    "Epoch 1/30\n"
)


def test_a_log_of_a_fallback_names_line_cause_and_fix(ctk: Ctk) -> None:
    (ctk.directory / "train.log").write_text(FALLBACK)
    done = ctk("check-gpu", "--log", "train.log", status=1)
    assert "2: E tensorflow/stream_executor/cuda/cuda_driver.cc:313] failed call to cuInit" in done.stdout
    assert "✗ Line 2: TensorFlow found no NVIDIA driver" in done.stdout
    assert "[no-driver-library]\n    Start the container with --nv" in done.stdout
    assert "Not the cause: line 1: a library was opened, which says nothing about the device." in done.stdout
    assert done.stdout.endswith("train.log: the program did not use the GPU.\n")
    found = document(ctk, "check-gpu", "--log", "train.log")
    assert (found["verdict"], found["lines"], found["evidence"][0]["line"]) == ("cpu-fallback", 3, 2)


def test_a_log_of_the_gpu_and_one_that_says_nothing(ctk: Ctk) -> None:
    (ctk.directory / "gpu.log").write_text("using device: cuda:0\n")
    assert "gpu.log: the program used the GPU: the program says so." in ctk("check-gpu", "--log", "gpu.log").stdout
    (ctk.directory / "nothing.log").write_bytes(b"\xff\x00\x1b[2J\r" * 100)
    done = ctk("check-gpu", "--log", "nothing.log", status=1)
    assert "nothing.log does not say whether the program used the GPU." in done.stdout
    assert "log-without-device" in done.stdout


def test_standard_input_is_read(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "check-gpu", "--log", "-"], input=FALLBACK, capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "Standard input: the program did not use the GPU." in done.stdout


def test_a_closed_standard_input_says_nothing(tmp_path: Path) -> None:
    script = f"exec {PROGRAM} check-gpu --log - <&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "Standard input does not say whether the program used the GPU." in done.stdout


def test_wrong_use_is_told(ctk: Ctk) -> None:
    assert "there is no log none.log" in ctk("check-gpu", "--log", "none.log", status=2).stderr
    assert "is a directory" in ctk("check-gpu", "--log", ".", status=2).stderr
    assert "leave out one of them" in ctk("check-gpu", "x.sif", "--log", "none.log", status=2).stderr
    assert "ctk check-gpu IMAGE, or ctk check-gpu --log FILE" in ctk("check-gpu", status=2).stderr


def test_a_device_that_never_ends_is_refused(ctk: Ctk) -> None:
    assert "/dev/zero is a device" in ctk("check-gpu", "--log", "/dev/zero", status=2).stderr


def test_a_job_that_the_gate_stopped_has_the_gates_code_and_one_line_is_shown_once(ctk: Ctk) -> None:
    (ctk.directory / "train.log").write_text(
        "ctk: job 7 of c, x, run 1 on n1, 2026-11-22 12:00:00 UTC, token 5e1c90ab32f7\n"
        "ctk[5e1c90ab32f7]: GPU gate: n2: cuInit returned 802: no fabric manager [system-not-ready]. Tell them.\n"
        "ctk[5e1c90ab32f7]: the program was not started; a script without this check: ctk sbatch --no-gpu-gate\n"
    )
    done = ctk("check-gpu", "--log", "train.log", status=1)
    assert "✗ Line 2: the GPU gate on n2: cuInit returned 802: no fabric manager. [system-not-ready]\n" in done.stdout
    assert done.stdout.endswith("train.log: the program was not started: its job had no usable GPU.\n")
    assert document(ctk, "check-gpu", "--log", "train.log")["verdict"] == "gpu-not-visible"
    assert "Traceback" not in ctk("check-gpu", "--log", "/dev/null", status=2).stderr


def test_escapes_of_a_log_do_not_reach_the_terminal(ctk: Ctk) -> None:
    (ctk.directory / "hostile.log").write_bytes(b"\x1b]0;title\x07using device: cuda \x1b[2J\x9b31m\n")
    assert "\x1b" not in ctk("check-gpu", "--log", "hostile.log").stdout
