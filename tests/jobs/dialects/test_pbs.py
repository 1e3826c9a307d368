"""OpenPBS and Torque: scripts against golden files, and what their language cannot express."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulated_pbs.language import parse_resources, parse_tasks
from tests.jobs.dialects.golden import ARRAY_PBS, FULL_PBS, OPENPBS_JOBS, PLAIN, TORQUE_JOBS, check_golden
from toolkit.jobs.dialects.pbs import OPENPBS, TORQUE
from toolkit.jobs.model import Directive, Job
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
from toolkit.scheduler.values import NO_TIME_LIMIT, Array, Gpus, TaskRange, clock_time, memory_mib, parse_array
from toolkit.support.errors import WrongInput

JOB, FULL, ARRAY, NODE = PLAIN, FULL_PBS, ARRAY_PBS, TORQUE_JOBS["node"]


@pytest.mark.parametrize("name", [*(f"{job}.pbs" for job in OPENPBS_JOBS), *(f"{job}.torque" for job in TORQUE_JOBS)])
def test_script_golden_file(name: str) -> None:
    check_golden(name)


def test_openpbs_asks_for_chunks_on_nodes_of_their_own() -> None:
    found = OPENPBS.directives(FULL)
    assert "-l select=2:ncpus=8:ngpus=2:mem=16gb:mpiprocs=2" in found
    assert "-l place=scatter" in found
    assert OPENPBS.directives(JOB)[3:] == ["-l select=1:ncpus=1:ngpus=1"]


def test_job_of_openpbs_has_the_umask_of_its_user() -> None:
    assert "-W umask=0027" in OPENPBS.directives(replace(JOB, umask=0o027))
    own = replace(JOB, umask=0o022, directives=(Directive("W", "group_list=lab,umask=077"),))
    assert [line for line in OPENPBS.directives(own) if "umask" in line] == ["-W group_list=lab,umask=077"]


def test_gpu_type_of_a_site_is_a_resource_of_the_chunk() -> None:
    site = RequestTemplates(gpu_type=RequestTemplate("-l gpu_type={type}"))
    found = OPENPBS.directives(replace(JOB, gpus=Gpus(2, "a100"), requests=site))
    assert [line for line in found if line.startswith("-l")] == ["-l select=1:ncpus=1:ngpus=2:gpu_type=a100"]
    assert "-l select=1:ncpus=1:ngpus=1" in OPENPBS.directives(replace(JOB, requests=site))


def test_torque_asks_for_nodes() -> None:
    assert {"-l nodes=1:ppn=4:gpus=4", "-l mem=16gb", "-l walltime=25:01:01"} <= set(TORQUE.directives(NODE))
    assert "-t 0,2,4,6,8%4" in TORQUE.directives(ARRAY)
    assert "-J 0-9:2%4" in OPENPBS.directives(ARRAY)


def test_no_line_names_a_file_for_the_output() -> None:
    for dialect, job in ((OPENPBS, FULL), (OPENPBS, ARRAY), (TORQUE, NODE)):
        assert not [line for line in dialect.directives(job) if line.startswith(("-o", "-e", "-k"))]


BOTH = [
    ({"time": NO_TIME_LIMIT}, "--time UNLIMITED", "Omit --time"),
    ({"partition": "a,b"}, "--partition a,b", "--partition a"),
    ({"gpus": Gpus(1, "a100")}, "--gpus a100:1", "--request"),
    ({"qos": "high"}, "--qos high", "--partition"),
    ({"mem": "0"}, "--mem 0", "--mem 64G"),
    ({"gpus": Gpus(3), "nodes": 2}, "--gpus 3 on --nodes 2", "--gpus 2 or --gpus 4"),
    ({"gpus": Gpus(2), "nodes": 2, "monitor": True}, "--gpu-monitor on several nodes", "Omit"),
]


@pytest.mark.parametrize(("changes", "named", "instead"), BOTH)
@pytest.mark.parametrize("dialect", [OPENPBS, TORQUE], ids=["openpbs", "torque"])
def test_what_pbs_cannot_express_is_refused(
    dialect: object, changes: dict[str, object], named: str, instead: str
) -> None:
    with pytest.raises(WrongInput) as caught:
        dialect.check(replace(JOB, **changes))  # type: ignore[attr-defined, arg-type]
    assert f" {named}: " in caught.value.message
    assert instead in (caught.value.fix or "")


@pytest.mark.parametrize("array", ["1,3", "5", "5-6:3"])
def test_array_that_openpbs_lacks_is_refused(array: str) -> None:
    with pytest.raises(WrongInput, match="OpenPBS cannot express --array"):
        OPENPBS.check(replace(ARRAY, array=parse_array(array)))
    TORQUE.check(replace(ARRAY, array=parse_array(array)))


def test_array_of_torque_has_no_steps() -> None:
    many = replace(ARRAY, array=parse_array("0-9999:3"))
    with pytest.raises(WrongInput, match="it knows no steps") as caught:
        TORQUE.check(many)
    assert "multiply PBS_ARRAYID" in (caught.value.fix or "")
    OPENPBS.check(many)
    TORQUE.check(replace(ARRAY, array=parse_array("0-9999,20000,30000-40000%8")))


@pytest.mark.parametrize(
    ("changes", "instead"),
    [({"gpus": Gpus(2)}, "-l nodes={nodes}:ppn={node_cores}:gpus={count}"), ({"mem": "4G", "gpus": None}, "pmem")],
)
def test_what_torque_has_for_one_node_only_is_refused(changes: dict[str, object], instead: str) -> None:
    job = replace(JOB, nodes=2, **changes)  # type: ignore[arg-type]
    with pytest.raises(WrongInput, match="on --nodes 2") as caught:
        TORQUE.check(job)
    assert instead in (caught.value.fix or "")
    OPENPBS.check(job)


def test_templates_of_the_site_express_it() -> None:
    line = "-l nodes={nodes}:ppn={node_cores}:gpus={count}:{type},mem={memory}b"
    job = replace(
        FULL, gpus=Gpus(4, "a100"), requests=RequestTemplates(resources=RequestTemplate(line)), array=None, qos=None
    )
    for dialect in (OPENPBS, TORQUE):
        dialect.check(job)
        asked = [option for option in dialect.directives(job) if option.startswith("-l")]
        assert asked == ["-l walltime=25:01:01", "-l nodes=2:ppn=8:gpus=2:a100,mem=16Gb"]


@pytest.mark.parametrize(
    "written",
    ["-o x", "-k oe", "-N x", "-J 1-2", "-t 1-2", "-I", "-q x", "-l walltime=1", "-l select=2:ngpus=1", "-l nodes=1"],
)
def test_what_ctk_writes_is_refused(written: str) -> None:
    with pytest.raises(WrongInput, match="ctk writes"):
        OPENPBS.parse_directive(written)
    assert OPENPBS.parse_directive("-W group_list=x") == Directive("W", "group_list=x")


_COUNT = st.none() | st.integers(1, 8)
_RANGES = st.builds(
    lambda first, more, step: TaskRange(first, first + more, step),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(1, 4),
)
_ARRAYS = st.builds(Array, st.lists(_RANGES, min_size=1, max_size=3).map(tuple), st.none() | st.integers(1, 9))
_JOBS = st.builds(
    lambda **given: replace(PLAIN, **given),
    nodes=_COUNT,
    tasks_per_node=_COUNT,
    cpus_per_task=_COUNT,
    gpus=st.none() | st.builds(Gpus, st.integers(0, 8), st.sampled_from([None, None, None, "a100"])),
    mem=st.none() | st.sampled_from(["512M", "16G", "1T", "0"]),
    time=st.none() | st.integers(0, 10**7),
    array=st.none() | _ARRAYS,
    partition=st.none() | st.sampled_from(["gpu", "a,b"]),
)


@given(job=_JOBS, torque=st.booleans())
def test_what_the_server_understands_is_what_was_asked(job: Job, torque: bool) -> None:
    """In every field that a job and the language of the server have; what a dialect refuses is not written."""
    dialect = TORQUE if torque else OPENPBS
    try:
        dialect.check(job)
    except WrongInput:
        return
    options = [line.partition(" ")[::2] for line in dialect.directives(job)]
    understood = parse_resources([value for name, value in options if name == "-l"], torque=torque)
    assert understood is not None
    nodes, processes = job.nodes or 1, job.tasks_per_node or 1
    gpus = job.gpus.count if job.gpus else 0
    asked = (nodes, processes * (job.cpus_per_task or 1), gpus // nodes)
    assert (understood.nodes, understood.cores, understood.gpus) == asked
    assert understood.memory == (memory_mib(job.mem) if job.mem else 0)
    if not torque:  # Torque's nodes have a line for each core
        assert understood.lines == (processes if job.tasks > 1 else 1)
    assert understood.scatter or nodes == 1
    default = None if torque else "120:00:00"
    assert understood.shown.get("walltime") == (clock_time(job.time) if job.time else default)
    assert dict(options).get("-q") == job.partition
    written = dict(options).get("-t" if torque else "-J")
    assert (written is None) == (job.array is None)
    if job.array is not None and written is not None:
        tasks = parse_tasks(written, torque=torque)
        numbers = [task for some in job.array.ranges for task in range(some.first, some.last + 1, some.step)]
        assert tasks is not None
        assert (sorted(tasks.numbers), tasks.limit) == (sorted(numbers), job.array.limit)
