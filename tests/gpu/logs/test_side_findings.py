"""What a log says besides where its program computed; the corpus has more of each."""

from __future__ import annotations

import pytest

from tests.gpu.logs.corpus import judged

SOCKET = "n1:7:7 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.2<0>\n"


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (SOCKET, "nccl-over-tcp"),
        (SOCKET + "n1:7:7 [0] NCCL INFO NET/IB : No device found.\n", "nccl-over-tcp"),
        ("n1:7:7 [0] NCCL INFO Using network IB\n", "nccl-rdma"),
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-10-21 DUE TO TIME LIMIT ***\n",
            "job-time-limit",
        ),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0.\n", "job-host-memory"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-10-21T18:39:55 ***\n", "job-cancelled"),
        ("Unable to register cuDNN factory\n", "log-harmless-lines"),
    ],
)
def test_a_finding_besides_the_device(log: str, code: str) -> None:
    (found,) = [found for found in judged(log).findings if not found.code.startswith(("log-gpu", "log-without"))]
    assert found.code == code
    assert found.message.startswith(("Line 1: ", "Not the cause: line 1: "))


TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n'
MODULE = "ModuleNotFoundError: No module named 'einops.layers'\n"
ANNOUNCED = "ctk: job 7 of cluster c, x, run 1 on n1, 2026-11-22 12:00:00 UTC, token 5e1c90ab32f7\n"
ENDED = "ctk[5e1c90ab32f7]: 2026-11-23 12:00:09 UTC ended with status "


@pytest.mark.parametrize(
    ("log", "code", "words"),
    [
        (
            TRACEBACK + MODULE,
            "program-module-missing",
            "Line 3: the program ended: the image has no module einops.layers.",
        ),
        ("/usr/bin/python: No module named pip\n", "program-module-missing", "no module pip"),
        (
            TRACEBACK + "FileNotFoundError: [Errno 2] No such file or directory: 'data/a.csv'\n",
            "program-file-missing",
            "no file data/a.csv in the container",
        ),
        (
            "python3: can't open file '/home/ann/train.py': [Errno 2] No such file or directory\n",
            "program-file-missing",
            "/home/ann/train.py",
        ),
        (TRACEBACK + "KeyError: 'loss'\n", "program-exception", "with an exception: KeyError: 'loss'."),
        ("[rank1]: " + TRACEBACK + "[rank1]: ValueError: bad\n", "program-exception", "ValueError: bad"),
        ("SyntaxError: invalid syntax\n", "program-exception", "SyntaxError: invalid syntax"),
        (TRACEBACK + "a.exceptions.Refused: no\n" + TRACEBACK + MODULE, "program-module-missing", "Line 6: "),
        (ANNOUNCED + TRACEBACK + MODULE + "more\n" * 200 + ENDED + "1\n", "program-module-missing", "Line 4: "),
        (
            TRACEBACK + "IndexError: x\n" + "slurmstepd: error: Detected 1 oom_kill event\n",
            "program-exception",
            "Line 3",
        ),
    ],
)
def test_exception_that_ended_a_program_is_the_cause(log: str, code: str, words: str) -> None:
    first = judged(log).findings[0]
    assert (first.code, str(first.severity)) == (code, "error")
    assert words in first.message
    assert "log-without-device" not in {found.code for found in judged(log).findings}


@pytest.mark.parametrize(
    "log",
    [
        MODULE,  # a program prints what it caught
        f"WARNING: no wandb ({MODULE.strip()})\n",
        TRACEBACK + MODULE + "epoch 1\n" * 200,
        TRACEBACK + MODULE + "Using device: cpu\n",
        ANNOUNCED + TRACEBACK + MODULE + ENDED + "0\n",
        TRACEBACK + "AssertionError: Torch not compiled with CUDA enabled\n",  # which has a code of its own
    ],
)
def test_exception_that_ended_no_program_is_no_cause(log: str) -> None:
    assert not [found for found in judged(log).findings if found.code.startswith("program-")]


def test_last_of_many_exceptions_counts() -> None:
    log = "".join(f"{TRACEBACK}KeyError: 'k{number}'\n" for number in range(20))
    assert "KeyError: 'k19'" in judged(log).findings[0].message


def test_job_that_was_ended_for_its_memory_was_not_cancelled_besides() -> None:
    killed = (
        "slurmstepd-n1: error: StepId=1.batch exceeded memory limit (324750336 > 314572800), being killed\n"
        "slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-23T20:56:31 ***\n"
    )
    assert [found.code for found in judged(killed).findings] == ["job-host-memory", "log-without-device"]
