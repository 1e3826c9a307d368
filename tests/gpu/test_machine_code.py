"""Which GPUs run binary code and PTX."""

from __future__ import annotations

import pytest

from toolkit.gpu.machine_code import has_binary, has_code


@pytest.mark.parametrize(
    ("architectures", "capability", "expected"),
    [
        (("sm_70",), (7, 0), True), (("sm_70",), (7, 5), True), (("sm_75",), (7, 0), False),
        (("sm_80",), (9, 0), False), (("what",), (7, 0), False),
        (("compute_80",), (9, 0), True), (("compute_80",), (7, 5), False), (("sm_90a",), (9, 0), True),
        (("sm_90a",), (9, 1), False), (("sm_100",), (10, 3), True), (("sm_100",), (12, 0), False),
    ],
)  # fmt: skip
def test_which_code_runs_on_which_gpu(
    architectures: tuple[str, ...], capability: tuple[int, int], expected: bool
) -> None:
    assert has_code(architectures, capability) is expected


def test_binary_code_is_told_from_ptx() -> None:
    assert has_binary(("sm_80", "compute_80"), (8, 9))
    assert not has_binary(("sm_80", "compute_80"), (9, 0))
