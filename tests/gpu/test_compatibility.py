"""Compatibility data: GPUs by name, drivers, floors."""

from __future__ import annotations

import itertools

import pytest

from toolkit.gpu.compatibility import compatibility, parse_driver, parse_gpu
from toolkit.support.errors import WrongInput


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("V100", (7, 0)), ("Tesla V100-SXM2-32GB", (7, 0)), ("sm_70", (7, 0)), ("7.0", (7, 0)), ("sm_100", (10, 0)),
        ("NVIDIA A100-PCIE-40GB", (8, 0)), ("a10", (8, 6)), ("NVIDIA L40S", (8, 9)), ("GeForce RTX 4090", (8, 9)),
        ("h200", (9, 0)), ("sm_90a", (9, 0)), ("12.0", (12, 0)),
    ],
)  # fmt: skip
def test_gpus_by_name(text: str, capability: tuple[int, int]) -> None:
    assert parse_gpu(text) == capability


@pytest.mark.parametrize("text", ["", "V1000", "MI250", "7", "sm_7", "7.0.1", "../x"])
def test_gpu_name_unknown(text: str) -> None:
    with pytest.raises(WrongInput, match="does not know the GPU"):
        parse_gpu(text)


@pytest.mark.parametrize("text", ["", "535.x", "12.4", "v535", "535.104.05.06"])
def test_driver_version_invalid(text: str) -> None:
    with pytest.raises(WrongInput, match="not an NVIDIA driver"):
        parse_driver(text)


def test_the_floors_agree_with_each_other() -> None:
    """A newer CUDA never runs on an older driver; what a toolkit shipped with is at least its floor."""
    rows = compatibility().drivers

    def order(cuda: str) -> tuple[int, ...]:
        return tuple(map(int, cuda.split(".")))

    majors: dict[int, list[tuple[int, ...]]] = {}
    for row in rows:
        majors.setdefault(order(row.cuda)[0], []).append(parse_driver(row.minimum))
        assert row.full is None or parse_driver(row.full) >= parse_driver(row.minimum)
    ordered = sorted(majors)
    for older, newer in itertools.pairwise(ordered):
        assert max(majors[older]) < min(majors[newer])
    single = [row for row in rows if "." in row.cuda]
    for one in single:
        for other in single:
            if order(one.cuda) < order(other.cuda):
                assert parse_driver(one.minimum) <= parse_driver(other.minimum)


def test_every_release_of_cuda_12_and_13_names_the_driver_it_shipped_with() -> None:
    full = {row.cuda: row.full for row in compatibility().drivers if row.full}
    releases = [f"12.{minor}" for minor in (0, 1, 2, 3, 4, 5, 6, 8, 9)] + [f"13.{minor}" for minor in (0, 1, 2, 3)]
    assert set(releases) <= set(full)
    ordered = [parse_driver(full[one]) for one in releases]
    assert ordered == sorted(ordered)
