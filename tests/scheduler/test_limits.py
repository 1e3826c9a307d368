"""The limits of a cluster: what exceeds them, and the nearest request that does not."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.scheduler.limits import check_request, excesses, fitting
from toolkit.scheduler.needs import needs_of
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.resources import OPTIONS, Resources
from toolkit.scheduler.values import NO_TIME_LIMIT, Gpus, parse_array
from toolkit.support.findings import Severity

BY_NAME = {option.name: key for key, option in OPTIONS.items()}


def said(profile: Any = TWO_PARTITIONS, **resources: Any) -> list[tuple[str, str, str | None]]:
    found = check_request(profile, Resources(**resources))
    assert all(finding.severity is Severity.ERROR for finding in found)
    return [(finding.code, finding.message, finding.fix) for finding in found]


def test_a_job_within_the_limits_is_not_mentioned() -> None:
    assert said(time=300) == []
    assert said(partition="gpu", gpus=Gpus(16, "a100"), nodes=4, time=3600, mem="256G", cpus_per_task=64) == []
    assert said(partition="cpu", nodes=2, time=7 * 86_400) == []
    assert said(partition="gpu", mem="0") == []


def test_time_above_the_limit_names_the_limit_and_other_partitions() -> None:
    assert said(partition="debug", time=7200) == [
        (
            "request-over-limit",
            "partition debug allows 5 minutes, and the job asks for 2 hours",
            "Nearest: --time 00:05:00, or --partition gpu",
        )
    ]
    assert said(partition="gpu", time=NO_TIME_LIMIT)[0][1].endswith(
        "allows 24 hours, and the job asks for no time limit"
    )


@pytest.mark.parametrize(
    ("resources", "message", "fix"),
    [
        ({"nodes": 2}, "partition debug allows 1 node, and the job asks for 2", "--nodes 1, or --partition"),
        ({"partition": "cpu", "nodes": 1}, "partition cpu is for at least 2 nodes, and", "--nodes 2, or --partition"),
        (
            {"gpus": Gpus(3)},
            "partition debug has 2 GPUs on a node, and the job asks for 3 on 1 node",
            "--nodes 1 --gpus 2",
        ),
        ({"gpus": Gpus(3, "v100")}, "partition debug has 2 GPUs on a node", "--nodes 1 --gpus v100:2"),
        (
            {"partition": "gpu", "gpus": Gpus(8), "nodes": 1},
            "partition gpu has 4 GPUs on a node, and the job asks for 8 on 1 node",
            "--nodes 2",
        ),
        ({"partition": "cpu", "nodes": 2, "gpus": Gpus(2)}, "partition cpu has no GPUs", "Nearest: --partition gpu"),
        ({"gpus": Gpus(1, "a100")}, "partition debug has GPUs of the type v100, not a100", "--gpus v100:1, or"),
        ({"cpus_per_task": 8}, "partition debug has 4 cores on a node, and the job asks for 8", "--cpus-per-task 4"),
        ({"mem": "17G"}, "has 16 GiB of memory on a node, and the job asks for 17 GiB", "--mem 16G, or"),
        (
            {"partition": "gpu", "nodes": 4, "time": 86_400},
            "allows 48 nodes x hours, and the job asks for 4 nodes x 24 hours",
            "--time 12:00:00",
        ),
    ],
)
def test_each_limit_has_its_nearest_request(resources: dict[str, Any], message: str, fix: str) -> None:
    found = said(**resources)
    assert [code for code, _, _ in found] == ["request-over-limit"]
    assert message in found[0][1]
    assert fix in str(found[0][2])


def test_gpus_without_a_number_of_nodes_are_spread_over_nodes() -> None:
    assert said(partition="gpu", gpus=Gpus(16)) == []
    assert "--nodes 4 --gpus 16" in str(said(partition="gpu", gpus=Gpus(17))[0][2])


def test_an_unknown_partition_names_those_that_fit() -> None:
    assert said(partition="gpus", gpus=Gpus(1), time=3600) == [
        (
            "unknown-partition",
            "cluster mine has no partition 'gpus'; it has debug, gpu, cpu. Did you mean \"gpu\"?",
            "Nearest: --partition gpu",
        )
    ]


def test_of_several_partitions_one_that_can_run_the_job_is_enough() -> None:
    assert said(partition="debug,gpu", time=3600) == []
    assert len(said(partition="debug,gpu", time=2 * 86_400)) == 2


def test_a_gpu_type_of_no_node_is_named_once_with_the_one_that_is_meant() -> None:
    assert said(gpus=Gpus(1, "V100")) == [
        (
            "unknown-gpu-type",
            "cluster mine has no GPU type 'V100'; it has v100, a100. Did you mean \"v100\"?",
            "--gpus v100:1",
        )
    ]


def test_required_options_are_asked_for_by_name() -> None:
    profile = replace(TWO_PARTITIONS, required=("account", "partition"))
    assert said(profile, gpus=Gpus(1, "a100"))[:2] == [
        ("option-required", "cluster mine refuses a job without --account", "Add --account NAME."),
        ("option-required", "cluster mine refuses a job without --partition", "Add --partition gpu."),
    ]
    assert said(profile, account="lab42", partition="gpu") == []


def test_an_array_above_the_limit() -> None:
    ((code, message, fix),) = said(array=parse_array("0-2000"))
    assert (code, message) == ("request-over-limit", "cluster mine allows 1000 tasks in an array, and the job has 2001")
    assert fix == "Submit 3 arrays, or let each task run several settings."


def test_slurm_bounds_the_numbers_of_tasks_too() -> None:
    ((code, message, fix),) = said(array=parse_array("1-1000"))
    assert (code, fix) == ("request-over-limit", "Begin with 0: --array 0-999")
    assert message == "cluster mine allows task numbers up to 999, and the array is 1-1000"
    assert said(array=parse_array("0-999")) == []
    assert said(replace(TWO_PARTITIONS, scheduler=Scheduler.OPENPBS), array=parse_array("1-1000")) == []


def test_what_the_profile_does_not_say_is_not_judged() -> None:
    nothing = replace(TWO_PARTITIONS, partitions=(), gpu_types=(), max_tasks=None)
    everything = {"partition": "x", "nodes": 999, "gpus": Gpus(9999, "x"), "time": 10**7, "mem": "9T"}
    assert said(nothing, **everything, array=parse_array("0-99999")) == []


def test_without_a_default_partition_one_that_fits_is_enough() -> None:
    profile = replace(
        TWO_PARTITIONS, partitions=tuple(replace(found, is_default=False) for found in TWO_PARTITIONS.partitions)
    )
    assert said(profile, time=3600, gpus=Gpus(1)) == []
    assert said(profile, gpus=Gpus(17))[0][1].startswith("partition ")


resources = st.builds(
    Resources,
    nodes=st.none() | st.integers(1, 6),
    tasks_per_node=st.none() | st.integers(1, 70),
    gpus=st.none() | st.builds(Gpus, st.integers(1, 30), st.sampled_from([None, "v100", "a100"])),
    mem=st.none() | st.integers(1, 300).map("{}G".format),
    time=st.none() | st.integers(0, 10**6),
    partition=st.none() | st.sampled_from(["debug", "gpu", "cpu"]),
)


@given(resources)
def test_the_nearest_partition_is_one_that_has_nothing_against_the_job(asked: Resources) -> None:
    for finding in check_request(TWO_PARTITIONS, asked):
        for name in re.findall(r"or --partition (\w+)|Nearest: --partition (\w+)", str(finding.fix)):
            partition = TWO_PARTITIONS.partition("".join(name))
            assert partition is not None
            assert not excesses(partition, needs_of(asked))


@given(resources)
def test_options_that_are_named_as_nearest_are_within_the_limits(asked: Resources) -> None:
    found = check_request(TWO_PARTITIONS, asked)
    assume(found)
    match = re.match(r"Nearest: (--(?!partition).*?)(?:, or --partition|$)", str(found[0].fix))
    assume(match)
    assert match is not None
    words = shlex.split(match[1])
    values = {
        BY_NAME[name.removeprefix("--")]: OPTIONS[BY_NAME[name.removeprefix("--")]].check(
            int(value) if value.isdigit() and name != "--time" and name != "--gpus" else value, name
        )
        for name, value in zip(words[::2], words[1::2], strict=True)
    }
    again = check_request(TWO_PARTITIONS, replace(asked, **values))
    assert not again, [finding.message for finding in again]


@given(resources)
def test_partitions_that_fit_have_nothing_against_the_job(asked: Resources) -> None:
    for partition in fitting(TWO_PARTITIONS, asked):
        assert not check_request(TWO_PARTITIONS, replace(asked, partition=partition.name))
