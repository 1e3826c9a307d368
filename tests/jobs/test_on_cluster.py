"""A job on a cluster: what the profile adds, and what the job keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.jobs.model import Job
from toolkit.jobs.offline import offline_variables
from toolkit.jobs.on_cluster import gpu_types_of, job_on
from toolkit.scheduler.profiles import Modules, Proxy
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
from toolkit.scheduler.values import Gpus

JOB = Job("train", "./x.sif", ("true",))


def test_a_profile_without_these_adds_nothing() -> None:
    assert job_on(JOB, TWO_PARTITIONS) == JOB


def test_modules_binds_and_implied_resources_are_added() -> None:
    profile = replace(
        TWO_PARTITIONS, modules=Modules(("apptainer",), "/etc/modules.sh"), binds=("/scratch", "/d:/data:ro")
    )
    requests = RequestTemplates(resources=RequestTemplate("-l {queue}={nodes}"))
    job = job_on(replace(JOB, gpus=Gpus(2), requests=requests, binds=("/other:/data",)), profile)
    assert (job.modules, job.module_setup) == (("apptainer",), "/etc/modules.sh")
    assert job_on(replace(JOB, modules=("cuda", "apptainer")), profile).modules == ("apptainer", "cuda")
    assert job.binds == ("/other:/data", "/scratch")
    assert (job.partition, job.nodes) == ("debug", 1)
    assert job.requests is requests


@pytest.mark.parametrize(("internet", "expected"), [(False, offline_variables()), (True, ()), (None, ())])
def test_offline_variables_only_where_there_is_no_internet(
    internet: bool | None, expected: tuple[tuple[str, str], ...]
) -> None:
    assert job_on(JOB, replace(TWO_PARTITIONS, internet=internet)).environment == expected


def test_variables_of_the_job_stay() -> None:
    profile = replace(TWO_PARTITIONS, internet=False, proxy=Proxy("http://proxy:3128"))
    job = job_on(replace(JOB, environment=(("HF_HUB_OFFLINE", "0"),), inherited=("https_proxy",)), profile)
    assert job.environment[0] == ("HF_HUB_OFFLINE", "0")
    names = [name for name, _ in job.environment]
    assert len(names) == len(set(names))
    assert "https_proxy" not in names
    assert dict(job.environment)["http_proxy"] == "http://proxy:3128"


@pytest.mark.parametrize(
    ("job", "types"),
    [
        (replace(JOB, gpus=Gpus(1, "a100")), ["a100"]),
        (replace(JOB, gpus=Gpus(1)), ["v100"]),
        (replace(JOB, gpus=Gpus(1), partition="gpu"), ["a100"]),
        (replace(JOB, gpus=Gpus(1), partition="elsewhere"), ["v100", "a100"]),
        (replace(JOB, gpus=Gpus(1, "h100"), partition="cpu"), ["v100", "a100"]),
    ],
)
def test_gpu_types_that_a_job_can_get(job: Job, types: list[str]) -> None:
    assert [gpu.type for gpu in gpu_types_of(job, TWO_PARTITIONS)] == types
