"""The lines of a job that its site writes in its own way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from toolkit.jobs.dialects.grid_engine import GRID_ENGINE
from toolkit.jobs.dialects.pbs import OPENPBS, TORQUE
from toolkit.jobs.dialects.site import site_lines
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.model import Job
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates, request_values
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.jobs.dialects.dialect import Dialect

JOB = Job("x", "./x.sif", ("true",), nodes=2, cpus_per_task=4, gpus=Gpus(4, "a100"), mem="64G", time=3600)


def lines(job: Job, **templates: str) -> tuple[str, ...]:
    given = RequestTemplates(**{key: RequestTemplate(text) for key, text in templates.items()})  # type: ignore[arg-type]
    job = replace(job, requests=given)
    return site_lines(job, request_values(job), lambda _: None).lines


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


def refused(job: Job, dialect: Dialect = GRID_ENGINE, **templates: str) -> WrongInput:
    given = RequestTemplates(**{key: RequestTemplate(text) for key, text in templates.items()})  # type: ignore[arg-type]
    with pytest.raises(WrongInput) as caught:
        dialect.check(replace(job, requests=given))
    return caught.value


@pytest.mark.parametrize(
    ("line", "option", "name"),
    [
        ("-l s_gpu=1", "--nodes 2", "{nodes}"),
        ("-pe mpi {slots}", "--gpus a100:4", "{count}"),
        ("-pe mpi {slots} -l gpu={slot_gpus}", "--mem 64G", "{slot_memory}"),
        ("-l select={nodes}:ngpus={count}", "--cpus-per-task 4", "{cores}"),
    ],
)
def test_what_a_request_leaves_out_is_refused(line: str, option: str, name: str) -> None:
    job = replace(JOB, gpus=Gpus(8, "a100")) if "slot_gpus" in line else JOB
    error = refused(job, resources=line)
    assert option in error.message
    assert name in str(error.fix)
    assert error.code == "request-omits-value"


def test_one_of_each_needs_no_value() -> None:
    assert lines(Job("x", "./x.sif", ("true",), gpus=Gpus(1)), resources="-l s_gpu=1") == ("-l s_gpu=1",)


@pytest.mark.parametrize("key", ["resources", "gpus"])
def test_gpus_that_differ_between_nodes_are_refused(key: str) -> None:
    job = Job("x", "./x.sif", ("true",), nodes=2, gpus=Gpus(3))
    error = refused(job, SLURM, **{key: "--gres=gpu:{count}"})
    assert "--gpus 3 on 2 nodes" in error.message
    assert str(error.fix).startswith("--gpus 2 or --gpus 4")
    SLURM.check(job)  # `--gpus=3` of Slurm may differ


def test_slurm_writes_what_a_request_leaves_out() -> None:
    given = RequestTemplates(resources=RequestTemplate("--gres=gpu:{type}:{count}"))
    found = SLURM.directives(replace(JOB, requests=given))
    assert {"--gres=gpu:a100:2", "--nodes=2", "--cpus-per-task=4", "--mem=64G"} <= set(found)
    assert not [line for line in found if line.startswith("--gpus")]


@pytest.mark.parametrize(
    ("dialect", "option"),
    [
        *((SLURM, option) for option in ("-o /tmp/x", "-o/tmp/x", "--output=/tmp/x", "--outp=/tmp/x", "--wrap=id")),
        *((SLURM, option) for option in ("--export=WANDB_API_KEY=x", "-D /tmp", "-J other")),
        *((GRID_ENGINE, option) for option in ("-o /tmp/x", "-N other", "-@ /etc/passwd", "-v A=1", "-b y", "-sync y")),
        *((dialect, option) for dialect in (OPENPBS, TORQUE) for option in ("-o /tmp/x", "-o/tmp/x", "-V", "-J 1-2")),
    ],
)
@pytest.mark.parametrize("form", ["{}", "-l a=1 {}"])
def test_no_template_sets_what_ctk_writes(dialect: Dialect, option: str, form: str) -> None:
    plain = Job("x", "./x.sif", ("true",), gpus=Gpus(1), account="lab42")
    error = refused(plain, dialect, resources=form.format(option))
    assert "ctk writes it itself" in error.message
    assert str(error.fix).startswith("Instead: ")
    with pytest.raises(WrongInput, match="ctk writes it itself"):
        dialect.check(replace(plain, requests=RequestTemplates(arguments=(RequestTemplate(option),))))
