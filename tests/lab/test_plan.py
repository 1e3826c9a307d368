"""A plan that no Slurm could carry out is refused before anything is started; GPUs are dealt to the nodes in turn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.lab.plan import MOST_GPUS, MOST_NODES, LabPlan
from toolkit.support.errors import WrongInput


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"name": ""}, "invalid lab name"),
        ({"name": "My Lab"}, "invalid lab name"),
        ({"name": "../x"}, "invalid lab name"),
        ({"name": "-x"}, "invalid lab name"),
        ({"name": "x" * 21}, "invalid lab name"),
        ({"name": "x\n"}, "invalid lab name"),
        ({"nodes": 0}, "--nodes is 0"),
        ({"nodes": MOST_NODES + 1}, "from 1 to 64"),
        ({"gpus_per_node": -1}, "--gpus-per-node"),
        ({"gpus_per_node": MOST_GPUS + 1}, "--gpus-per-node"),
        ({"cpus_per_node": 0}, "--cpus-per-node"),
        ({"gpu_type": "a100,b"}, "--gpu-type"),
        ({"gpu_type": "3090"}, "--gpu-type"),
        ({"gpu_type": ""}, "--gpu-type"),
        ({"port": 80}, "--port is 80"),
        ({"port": 65535}, "--port is 65535"),
    ],
)
def test_invalid_values_are_refused(values: dict[str, Any], word: str) -> None:
    with pytest.raises(WrongInput, match=word):
        LabPlan(**values)


@given(nodes=st.integers(1, MOST_NODES), gpus=st.integers(1, 20))
def test_each_real_gpu_belongs_to_one_node(nodes: int, gpus: int) -> None:
    devices = tuple(f"/dev/nvidia{number}" for number in range(gpus))
    plan = LabPlan(nodes=nodes, real_gpus=devices)
    dealt = [device for node in plan.node_names for device in plan.gpus_of(node)]
    assert sorted(dealt) == sorted(devices)
    counts = [plan.gpu_count(node) for node in plan.node_names]
    assert max(counts) - min(counts) <= 1
    assert counts == sorted(counts, reverse=True)
