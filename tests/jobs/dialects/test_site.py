"""The lines of a job that its site writes in its own way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolkit.jobs.dialects.site import site_lines
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.model import Job
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates, request_values
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput

JOB = Job("x", "./x.sif", ("true",), nodes=2, cpus_per_task=4, gpus=Gpus(4, "a100"), mem="64G", time=3600)


def lines(job: Job, **templates: str) -> tuple[str, ...]:
    given = RequestTemplates(**{key: RequestTemplate(text) for key, text in templates.items()})  # type: ignore[arg-type]
    job = replace(job, requests=given)
    return site_lines(job, request_values(job)).lines


def test_one_line_for_all_resources_replaces_the_others() -> None:
    found = lines(JOB, resources="-l node_f={nodes}", gpus="-l gpu={count}", time="-l h_rt={time}")
    assert found == ("-l node_f=2", "-l h_rt=1:00:00")


def test_each_template_is_for_what_the_job_requests() -> None:
    templates = {"cores": "-pe smp {slots}", "gpus": "-l {type}={count}", "memory": "-l h_vmem={slot_memory}"}
    assert lines(JOB, **templates) == ("-pe smp 8", "-l a100=2", "-l h_vmem=16384M")
    assert lines(Job("x", "./x.sif", ("true",), gpus=Gpus(0)), **templates) == ()


def test_value_that_is_missing_names_the_option() -> None:
    with pytest.raises(WrongInput, match=r"\{type\}"):
        lines(replace(JOB, gpus=Gpus(4)), gpus="-l {type}={count}")


def test_slurm_writes_no_line_for_what_the_site_writes() -> None:
    templates = RequestTemplates(
        gpus=RequestTemplate("--gres=gpu:{type}:{count}"), arguments=(RequestTemplate("-A {account}"),)
    )
    found = SLURM.directives(replace(JOB, account="lab42", requests=templates))
    assert "--gres=gpu:a100:2" in found
    assert not [line for line in found if line.startswith(("--gpus", "--account"))]
    assert templates.submission_arguments({"account": "lab42"}) == ("-A", "lab42")
    assert templates.submission_arguments({}) == ()
