"""A job: whether it uses a GPU, how many processes it has, and where its log is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolkit.jobs.model import Directive, Job
from toolkit.scheduler.values import parse_array, parse_gpus

JOB = Job("train", "./x.sif", ("true",))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gres", "gpu:1", True),
        ("gres", "fpga:1,gpu:a100:2", True),
        ("gres", "gpu", True),
        ("gres", "gpumem:1", False),
        ("gres", None, False),
        ("gres", "gpu:0", False),
        ("gres", "gpu:a100:0", False),
        ("gres", "gpu:a100:0,gpu:v100:1", True),
        ("gpus-per-node", "2", True),
        ("gpus-per-node", "a100:0", False),
        ("gpus-per-task", "0", False),
        ("gpu-bind", "closest", False),
    ],
)
def test_a_directive_that_asks_for_gpus_binds_the_driver(name: str, value: str | None, expected: bool) -> None:
    directive = Directive(name, value)
    assert directive.asks_for_gpus is expected
    assert replace(JOB, directives=(Directive("comment"), directive)).uses_gpu is expected


def test_no_gpus_is_no_gpu() -> None:
    assert not JOB.uses_gpu
    assert not replace(JOB, gpus=parse_gpus("0")).uses_gpu
    assert replace(JOB, gpus=parse_gpus("a100:1")).uses_gpu


def test_tasks_are_those_of_all_nodes() -> None:
    assert [
        replace(JOB, nodes=nodes, tasks_per_node=tasks).tasks for nodes, tasks in ((None, None), (2, None), (2, 4))
    ] == [1, 2, 8]


@pytest.mark.parametrize(
    ("array", "every", "first"),
    [
        (None, "logs/train-7.log", "logs/train-7.log"),
        ("3-5", "logs/train-7_*.log", "logs/train-7_3.log"),
        ("007,9%2", "logs/train-7_*.log", "logs/train-7_7.log"),
    ],
)
def test_log_of_an_array_is_one_file_for_each_task(array: str | None, every: str, first: str) -> None:
    job = replace(JOB, array=parse_array(array) if array else None)
    assert (job.log("7"), job.first_log("7")) == (every, first)
