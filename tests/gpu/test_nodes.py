"""One row a node."""

from __future__ import annotations

import pytest

from toolkit.gpu.nodes import is_on_several_nodes, node_row
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity


def test_a_row_has_node_verdict_and_reason_in_one_line() -> None:
    finding = Finding("stub-library", Severity.ERROR, "cuInit returned 34:\nthe loaded libcuda is a stub.", "Fix it.")
    assert node_row("n2", GpuVerdict.NOT_VISIBLE, finding) == (
        "n2: gpu-not-visible: cuInit returned 34: the loaded libcuda is a stub. [stub-library]"
    )
    assert node_row("n1", GpuVerdict.USED, None) == "n1: gpu-used"


@pytest.mark.parametrize(
    ("environment", "several"),
    [
        ({}, False),
        ({"SLURM_STEP_NUM_NODES": "1"}, False),
        ({"SLURM_STEP_NUM_NODES": "2", "SLURM_NTASKS": "2"}, True),
        ({"SLURM_STEP_NUM_NODES": "two"}, False),
        ({"SLURM_JOB_NUM_NODES": "4"}, False),  # a batch script, which runs on the first node only
    ],
)
def test_only_a_step_on_more_than_one_node_prints_rows(environment: dict[str, str], several: bool) -> None:
    assert is_on_several_nodes(environment) is several
