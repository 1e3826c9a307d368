"""CUDA_VISIBLE_DEVICES against the GPUs that there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.gpu.probe import Managed
from toolkit.gpu.visible_devices import available, unknown_entry

TWO = (Managed(0, uuid="GPU-a0-1"), Managed(1, uuid="GPU-b0-2", mig=True, mig_uuids=("MIG-c0-3",)))


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ("0", None),
        ("1,0", None),
        ("0, 1", None),
        ("2", "2"),
        ("0,2,1", "2"),
        ("0,-1,1", "-1"),
        ("GPU-a0-1", None),
        ("GPU-a0", None),
        ("GPU-ff", "GPU-ff"),
        ("MIG-c0-3", None),
        ("MIG-dd", "MIG-dd"),
        ("MIG-GPU-b0-2/1/0", None),
        ("MIG-GPU-ff/1/0", "MIG-GPU-ff/1/0"),
        ("all", "all"),
        ("-1", "-1"),
        ("", ""),
        ("0,", ""),
    ],
)
def test_unknown_entry(value: str, unknown: str | None) -> None:
    assert unknown_entry(value, TWO) == unknown
    assert unknown_entry(value, ()) is None


@given(st.text(max_size=40))
def test_any_value_is_read(value: str) -> None:
    found = unknown_entry(value, TWO)
    assert found is None or found in value


def test_values_that_would_do_are_listed() -> None:
    assert available(TWO) == "0 (GPU-a0-1), MIG-c0-3"
