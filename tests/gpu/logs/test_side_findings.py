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
