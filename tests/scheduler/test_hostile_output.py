"""Whatever a scheduler's programs print, each parser answers or says that it cannot read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.scheduler import detection, grid_engine, pbs, pbs_site, slurm, slurm_json, slurm_nodes
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = (
    *(
        "PartitionName=",
        "MaxNodes=",
        "MaxTime=",
        "Nodes=",
        "Default=YES",
        "NodeName=n1 State=IDLE CPUTot=",
        "Gres=gpu:",
    ),
    *(
        "JobId=",
        "JobState=",
        "ExitCode=",
        "|idle|4|",
        "MaxArraySize = ",
        "HOSTNAME",
        "  hc:gpu=",
        "jobnumber ",
        "failed ",
    ),
    *(
        "exit_status ",
        "slots ",
        "h_rt ",
        "qname q",
        "complex_values gpu=",
        "job_number:",
        "error reason 1:",
        "Queue: q",
    ),
    *("resources_max.nodect = ", "resources_max.walltime = ", "12 0.5 x u r 11/21/2026 03:08:50", "====", "<Node>"),
    *("</Node>", "<Data>", "</Data>", "<np>", "</np>", "status", "physmem=", "kb", "G", "²", "9" * 5000, "1.2.3"),
    *("\n", " ", "=", ":", "-", "\0", "\x1b[31m", "'", "$(id)", "\\\n", "\u202e"),
)
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=5) | st.integers().map(str), max_size=20).map("".join)
KEYS = st.sampled_from(
    (
        *(
            "nodes",
            "Jobs",
            "jobs",
            "sinfo",
            "resources_available",
            "ncpus",
            "mem",
            "ngpus",
            "gpu_type",
            "state",
            "queue",
        ),
        *("job_state", "exec_host", "Exit_status", "exit_code", "array", "array_job_id", "number", "set", "infinite"),
        *("name", "gres", "state_flags", "partitions", "cpus", "memory", "real_memory", "partition", "node", "current"),
    )
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)
OF_TEXT: tuple[Callable[[str], object], ...] = (
    slurm.exit_code, slurm.parse_sacct, slurm.parse_squeue, slurm.parse_scontrol, slurm.parse_finished,
    slurm.parse_time, slurm_nodes.parse_node, slurm_nodes.parse_gres, slurm_nodes.parse_queue, slurm_nodes.parse_sinfo,
    slurm_nodes.parse_partitions, detection.seconds_of, detection.slurm_settings, detection.slurm_accounts,
    lambda text: pbs_site.parse_attributes(text, "Queue"), detection.grid_engine_queue, detection.grid_engine_host_gpus,
    detection.grid_engine_gpus, grid_engine.parse_qstat, grid_engine.parse_details, grid_engine.parse_qacct,
    grid_engine.parse_qhost, grid_engine.submitted_job, pbs.parse_qstat_xml, pbs.parse_nodes_xml, pbs.submitted_job,
    pbs.mebibytes,
)  # fmt: skip
OF_JSON: tuple[Callable[[str], object], ...] = (
    pbs.parse_qstat_json, pbs_site.parse_vnodes, slurm_json.parse_jobs, slurm_json.parse_nodes,
)  # fmt: skip


def read(parse: Callable[[str], object], text: str) -> None:
    try:
        parse(text)
    except ProgramFailed as error:
        assert error.code == "scheduler-output"  # noqa: PT017 - any other error fails the test


@pytest.mark.parametrize("parse", OF_TEXT, ids=lambda parse: f"{parse.__module__.rpartition('.')[2]}-{parse.__name__}")
@given(text=TEXTS)
@example(text="n1 lx ² 1 1 1 0.1 1.6.0G 1G 0 0\n  hc:gpu=1.2.3")
@example(text="PartitionName=p MaxNodes=² MaxTime=1")
@example(text=f"PartitionName=p MaxNodes={'9' * 5000}")
@example(text=f"qname q\nslots {'9' * 5000}\nh_rt ²\n")
def test_text_is_read_or_refused(parse: Callable[[str], object], text: str) -> None:
    read(parse, text)


@pytest.mark.parametrize("parse", OF_JSON, ids=lambda parse: f"{parse.__module__.rpartition('.')[2]}-{parse.__name__}")
@given(key=KEYS, document=DOCUMENTS)
@example(key="nodes", document=[1])
@example(key="nodes", document={"n": {"resources_available": [1]}})
@example(key="nodes", document={"n": {"resources_available": {"mem": f"{'9' * 400}tb", "ncpus": "9" * 5000}}})
@example(key="sinfo", document=[{"name": "n", "state_flags": 3, "partitions": 4}])
def test_json_is_read_or_refused(parse: Callable[[str], object], key: str, document: Any) -> None:
    for whole in (document, {key: document}):
        read(parse, json.dumps(whole))


@pytest.mark.parametrize("parse", OF_JSON)
def test_deep_json_is_refused(parse: Callable[[str], object]) -> None:
    read(parse, "[" * 100_000)
