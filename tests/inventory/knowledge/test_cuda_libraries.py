"""Names of CUDA libraries."""

from __future__ import annotations

import pytest

from toolkit.inventory.knowledge.cuda_libraries import is_cuda_library, major_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libcudart.so.12", True),
        ("libcudart-d0da41ae.so.11.0", True),
        ("libcudnn_ops.so.9", True),
        ("libnccl.so", True),
        ("libcublasLt.so.12.4.5.8", True),
        ("libcuda.so.1", False),
        ("libnvidia-ml.so.1", False),
        ("libcudart_static.a", False),
        ("libtorch_cuda.so", False),
        ("libcudart.so.12.bak", False),
    ],
)
def test_libraries_of_the_driver_and_of_frameworks_are_not_cuda_s(name: str, expected: bool) -> None:
    assert is_cuda_library(name) is expected


@pytest.mark.parametrize(
    ("sonames", "stem", "expected"),
    [
        (("libcudart.so.12", "libcudnn.so.9"), "libcudnn", "9"),
        (("libcudnn_ops.so.8", "libcudnn.so.9"), "libcudnn", "9"),
        (("libcudart-d0da41ae.so.11.0",), "libcudart", "11.0"),
        (("libcudnn.so",), "libcudnn", None),
        ((), "libcudnn", None),
    ],
)
def test_major_is_the_number_behind_the_very_stem(sonames: tuple[str, ...], stem: str, expected: str | None) -> None:
    assert major_of(sonames, stem) == expected
