"""Grid Engine: scripts against golden files, and what its language cannot express."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.jobs.dialects.golden import GRID_ENGINE_JOBS, PLAIN, check_golden
from toolkit.jobs.dialects.grid_engine import GRID_ENGINE
from toolkit.jobs.model import Directive, Job
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
from toolkit.scheduler.values import Gpus, parse_array
from toolkit.support.errors import WrongInput

JOB, JOBS = PLAIN, GRID_ENGINE_JOBS


@pytest.mark.parametrize("name", JOBS)
def test_script_golden_file(name: str) -> None:
    check_golden(f"{name}.sge")


def lines(job: Job) -> list[str]:
    return list(GRID_ENGINE.directives(job))


def test_log_is_a_file_of_the_submit_directory() -> None:
    assert "-o $JOB_NAME-$JOB_ID.log" in lines(JOB)
    assert "-o $JOB_NAME-$JOB_ID_$TASK_ID.log" in lines(JOBS["array"])
    assert not any("logs" in line for job in JOBS.values() for line in lines(job))


def test_site_writes_the_request_and_the_group_is_an_argument_of_submission() -> None:
    found = lines(JOBS["full"])
    assert "-l node_f=2" in found
    assert not [line for line in found if line.startswith(("-pe", "-P", "-l gpu", "-g"))]


@pytest.mark.parametrize(
    ("changes", "named", "instead"),
    [
        ({"name": "7x"}, "--job-name 7x", "x7x"),
        ({"array": parse_array("0-9")}, "--array 0-9", "--array 1-10"),
        ({"array": parse_array("1,3")}, "--array 1,3", "for each range"),
        ({"nodes": 2, "gpus": Gpus(2)}, "--nodes 2", "--request"),
        ({"mem": "16G", "cpus_per_task": 4}, "--mem 16G", "h_vmem=4096M"),
        ({"mem": "0"}, "--mem 0", "--mem 64G"),
        ({"gpus": Gpus(1, "a100")}, "--gpus a100:1", "-l {type}={count}"),
        ({"qos": "high"}, "--qos high", "--partition"),
        ({"gpus": Gpus(3), "nodes": 2}, "--gpus 3 on --nodes 2", "--gpus 2 or --gpus 4"),
        ({"gpus": Gpus(2), "nodes": 2, "monitor": True}, "--gpu-monitor", "Omit"),
    ],
)
def test_what_grid_engine_cannot_express_is_refused(changes: dict[str, object], named: str, instead: str) -> None:
    with pytest.raises(WrongInput) as caught:
        GRID_ENGINE.check(replace(JOB, **changes))  # type: ignore[arg-type]
    assert caught.value.message.startswith(
        f"Grid Engine cannot express {'the GPU type of ' * ('type' in instead)}{named}"
    )
    assert instead in (caught.value.fix or "")


def test_templates_of_the_site_express_it() -> None:
    templates = RequestTemplates(
        cores=RequestTemplate("-pe mpi {slots}"),
        memory=RequestTemplate("-l h_vmem={slot_memory}"),
        gpus=RequestTemplate("-l {type}={count}"),
        qos=RequestTemplate("-l {qos}=1"),
    )
    job = replace(JOB, nodes=2, cpus_per_task=2, gpus=Gpus(2, "a100"), mem="16G", qos="high", requests=templates)
    GRID_ENGINE.check(job)
    assert {"-pe mpi 4", "-l h_vmem=8192M", "-l a100=1", "-l high=1"} <= set(lines(job))


@pytest.mark.parametrize(
    ("written", "directive"),
    [("-m ea", Directive("m", "ea")), ("-R y", Directive("R", "y")), ("-l s_gpu=1", Directive("l", "s_gpu=1"))],
)
def test_any_other_option_passes(written: str, directive: Directive) -> None:
    assert GRID_ENGINE.parse_directive(written) == directive
    assert directive.asks_for_gpus is ("gpu" in written)


@pytest.mark.parametrize(
    "written",
    ["-o x", "-e x", "-j n", "-cwd", "-wd /", "-N x", "-t 1-2", "-tc 3", "-S /bin/sh", "-pe smp 2", "-l h_rt=1", "-q x",
     "-l gpu=1,h_rt=60", "--x=1", "m ea", "-m 'x'", "-m a#b", "-m $x", "-m a\nb", "-", ""],
)  # fmt: skip
def test_what_ctk_writes_and_what_cannot_stand_in_a_line_is_refused(written: str) -> None:
    with pytest.raises(WrongInput):
        GRID_ENGINE.parse_directive(written)


@pytest.mark.parametrize("name", ["a b", "a:b", "a$b", "a%j", "a'b", 'a"b', "a\\b", "日本語", "a#b"])
def test_directory_that_grid_engine_can_use(name: str) -> None:
    assert GRID_ENGINE.check_directory(f"/home/{name}") == f"/home/{name}"


@pytest.mark.parametrize("name", ["a$USERb", "$HOME", "a$JOB_IDx", "$TASK_ID", "a\nb"])
def test_directory_in_which_a_job_would_wait_for_ever_is_refused(name: str) -> None:
    with pytest.raises(WrongInput, match="variable in its name"):
        GRID_ENGINE.check_directory(f"/home/{name}")
