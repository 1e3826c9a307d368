"""Compatibility data: GPUs by name, drivers, floors."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.gpu import compatibility as module
from toolkit.gpu.compatibility import Gpu, compatibility, find_gpu, gpu_name, parse_driver, parse_gpu
from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import read_toml

TABLE = Path(module.__file__).with_suffix(".toml")


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("V100", (7, 0)), ("Tesla V100-SXM2-32GB", (7, 0)), ("sm_70", (7, 0)), ("7.0", (7, 0)), ("sm_100", (10, 0)),
        ("NVIDIA A100-PCIE-40GB", (8, 0)), ("a10", (8, 6)), ("NVIDIA L40S", (8, 9)), ("GeForce RTX 4090", (8, 9)),
        ("h200", (9, 0)), ("sm_90a", (9, 0)), ("12.0", (12, 0)), ("NVIDIA RTX A6000", (8, 6)), ("rtx_a4000", (8, 6)),
        ("RTXA5000", (8, 6)), ("A16", (8, 6)), ("A2", (8, 6)), ("NVIDIA A10G", (8, 6)), ("H20", (9, 0)),
        ("NVIDIA H800", (9, 0)), ("NVIDIA A800-SXM4-80GB", (8, 0)), ("NVIDIA H200 NVL", (9, 0)), ("h100nvl", (9, 0)),
        ("L20", (8, 9)), ("rtx4060", (8, 9)), ("NVIDIA GeForce RTX 4070 Ti SUPER", (8, 9)), ("rtx4090d", (8, 9)),
        ("RTX 5060 Ti", (12, 0)), ("NVIDIA RTX 6000 Ada Generation", (8, 9)), ("Quadro RTX 6000", (7, 5)),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", (12, 0)), ("rtx_2080_ti", (7, 5)), ("rtx2080ti", (7, 5)),
        ("RTX 3080 Ti", (8, 6)), ("GTX 1080 Ti", (6, 1)), ("gtx_1660", (7, 5)), ("NVIDIA TITAN V", (7, 0)),
        ("TITAN RTX", (7, 5)), ("NVIDIA TITAN X (Pascal)", (6, 1)), ("GeForce GTX TITAN X", (5, 2)),
        ("Tesla K80", (3, 7)), ("M40", (5, 2)), ("NVIDIA B300 SXM6 AC", (10, 3)), ("GB200 NVL72", (10, 0)),
        ("GB300", (10, 3)), ("Jetson AGX Orin", (8, 7)), ("Jetson AGX Thor", (11, 0)), ("RTX 4000 SFF Ada", (8, 9)),
        ("a100_3g.20gb", (8, 0)), ("v100_32gb", (7, 0)), ("NVIDIA H100 80GB HBM3", (9, 0)), ("sm_121", (12, 1)),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", (8, 0)), ("NVIDIA GH200 480GB", (9, 0)),
        ("GRID A100-20C", (8, 0)), ("NVIDIA A40-48Q", (8, 6)), ("Orin (nvgpu)", (8, 7)), ("H20-3e", (9, 0)),
        ("NVIDIA GeForce RTX 4090 D", (8, 9)), ("NVIDIA GeForce RTX 2070 with Max-Q Design", (7, 5)),
        ("Tesla V100-DGXS-32GB", (7, 0)),
        ("NVIDIA RTX A2000 12GB", (8, 6)),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", (8, 6)), ("NVIDIA A100 80GB PCIe", (8, 0)), ("gpu:h100", (9, 0)),
        ("Grace Hopper GH200", (9, 0)), ("Tesla V100-SXM2-32GB-LS", (7, 0)), ("Jetson Orin Nano Super", (8, 7)),
        ("Tesla K20Xm", (3, 5)), ("K20X", (3, 5)), ("Tesla K10", (3, 0)), ("GRID K520", (3, 0)), ("Tesla M10", (5, 0)),
        ("Quadro K2200", (5, 0)), ("Quadro M4000", (5, 2)), ("Quadro P2000", (6, 1)),
        ("GeForce GTX TITAN", (3, 5)), ("GeForce GTX TITAN Black", (3, 5)), ("TITAN V CEO Edition", (7, 0)),
        ("p100l", (6, 0)), ("v100l", (7, 0)), ("a100l", (8, 0)), ("Tesla V100S-PCIE-32GB", (7, 0)), ("T4G", (7, 5)),
        ("NVIDIA T1000 8GB", (7, 5)), ("NVIDIA T400 4GB", (7, 5)), ("NVIDIA GeForce GTX 1630", (7, 5)),
        ("Quadro RTX 3000", (7, 5)), ("NVIDIA A100X", (8, 0)), ("NVIDIA A800 40GB Active", (8, 0)),
        ("NVIDIA RTX A1000", (8, 6)), ("NVIDIA RTX A5500", (8, 6)), ("NVIDIA GeForce RTX 2050", (8, 6)),
        ("NVIDIA L2", (8, 9)), ("NVIDIA RTX 2000 Ada Generation", (8, 9)), ("NVIDIA RTX 5880 Ada Generation", (8, 9)),
        ("NVIDIA B100", (10, 0)), ("Jetson TX2", (6, 2)), ("NVIDIA Tegra X1", (5, 3)), ("Jetson Nano", (5, 3)),
        ("Jetson AGX Xavier", (7, 2)), ("NVIDIA RTX PRO 2000 Blackwell", (12, 0)),
        ("NVIDIA RTX PRO 4000 Blackwell SFF Edition", (12, 0)), ("NVIDIA GeForce RTX 5050", (12, 0)),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", (12, 0)), ("nvidia_h100_80gb_hbm3_1g.10gb", (9, 0)),
    ],
)  # fmt: skip
def test_gpus_by_name(text: str, capability: tuple[int, int]) -> None:
    assert parse_gpu(text) == capability


@pytest.mark.parametrize(
    "text",
    [
        "", "V1000", "MI25", "7", "sm_7", "7.0.1", "../x", "A4000x", "M4", "Apple M10", "M2000M", "RTX 3000", "GT 1030",
        "sm_1000", "100.00", "V100\"; rm -rf", "V100 rm -rf", "V100\n", "V100 A100", "V100;", "$(V100)", "V100 please",
    ],
)  # fmt: skip
def test_gpu_name_unknown(text: str) -> None:
    with pytest.raises(WrongInput, match="does not know the GPU"):
        parse_gpu(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("A4000x", "A4000, "), ("RTX 6000", "QUADRORTX6000, RTX6000ADA"), ("TITAN X", "GTXTITANX, TITANXP"),
        ("rtx409", "RTX4090"), ("H1000", "H100"), ("Grace Hopper", "GH200"), ("DGX Spark", "GB10"), ("V100 x", "V100"),
    ],
)  # fmt: skip
def test_gpu_name_that_is_unknown_or_of_two_generations_is_refused_with_near_matches(text: str, near: str) -> None:
    with pytest.raises(WrongInput) as caught:
        parse_gpu(text)
    assert f"does not know the GPU {text!r}. Near matches: {near}" in caught.value.message


@given(st.text())
def test_gpu_name_is_found_in_any_text_or_not_at_all(text: str) -> None:
    assert gpu_name(text) in {None, *compatibility().gpus, *(name for row in compatibility().amd for name in row.names)}


@given(st.sampled_from(sorted(compatibility().gpus)), st.sampled_from(["", "NVIDIA ", "nvidia_", "NVIDIA GeForce "]))
def test_gpu_name_is_found_after_a_brand_and_in_lower_case(name: str, brand: str) -> None:
    assert gpu_name(brand + name) == gpu_name(brand + name.lower()) == name


BESIDE = st.sampled_from(
    sorted({*compatibility().around, "32GB", "SXM4", "PCIe", "3g.20gb", "NVL"} - {"ADA", "PASCAL"})
)


@given(st.sampled_from(sorted(compatibility().gpus)), st.lists(BESIDE, max_size=2), st.lists(BESIDE, max_size=3))
def test_a_name_with_what_vendors_write_around_it_means_one_architecture(
    name: str, before: list[str], after: list[str]
) -> None:
    text = " ".join((*before, name, *after))
    meant = {compatibility().gpus[other] for other in compatibility().gpus if gpu_name(text) == other}
    try:
        found = find_gpu(text)
    except WrongInput:
        return  # words that make another GPU of it
    assert {found.capability} == meant


@pytest.mark.parametrize("text", ["Quadro RTX 5000 Ada", "Quadro RTX 4000 Ada Generation", "V100 A100", "TITAN X"])
def test_text_with_the_names_of_two_generations_is_refused(text: str) -> None:
    with pytest.raises(WrongInput, match="does not know the GPU"):
        find_gpu(text)


def test_gpu_names_are_listed_once() -> None:
    names = [name for row in read_toml(TABLE).content["gpus"]["names"].values() for name in row]
    names += [name for row in compatibility().amd for name in row.names]
    assert len(names) == len(set(names))
    assert set(compatibility().forward) | set(compatibility().processors) <= set(names)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("MI300X", "gfx942"), ("mi250x", "gfx90a"), ("AMD Instinct MI210", "gfx90a"), ("gfx942", "gfx942"),
        ("gfx90a:sramecc+:xnack-", "gfx90a"),
        ("AMD Instinct MI250X / MI250", "gfx90a"), ("AMD Instinct MI300X OAM", "gfx942"), ("MI300A", "gfx942"),
        ("Radeon Instinct MI50 32GB", "gfx906"), ("MI60", "gfx906"), ("AMD Radeon VII", "gfx906"), ("gfx906", "gfx906"),
        ("AMD Instinct MI300X VF", "gfx942"), ("mi100", "gfx908"),
    ],
)  # fmt: skip
def test_gpu_of_amd_is_known_by_its_name(text: str, target: str) -> None:
    assert find_gpu(text) == Gpu(text, amd=target)
    with pytest.raises(WrongInput, match="GPU of AMD"):
        parse_gpu(text)


def test_first_driver_of_a_generation_is_that_of_its_first_cuda() -> None:
    known = [capability for row in compatibility().limits for capability in row.capabilities]
    assert len(known) == len(set(known))
    for row in compatibility().limits:
        for capability in row.capabilities:
            floor = compatibility().floor(compatibility().first_cuda.get(capability, ""))
            assert row.first == (floor and (floor.full or floor.minimum)), row.name
    jetson = compatibility().integrated.capabilities
    assert set(compatibility().gpus.values()) - jetson == set(known) - {(3, 2)}


def test_every_fact_names_its_source_and_day() -> None:
    content = read_toml(TABLE).content
    rows = [row for table in ("dropped", "limits", "amd") for row in content[table]]
    rows += [content[table] for table in ("drivers", "gpus", "first", "arm", "x86", "integrated", "forward")]
    assert all(row["source"] and row["checked"].year >= 2026 for row in rows)


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


@pytest.mark.parametrize("text", ["Radeon RX 7900 XTX", "gfx1100", "MI25", "AMD Ryzen AI Max+ 395"])
def test_unknown_gpu_of_amd_has_no_compute_capability(text: str) -> None:
    with pytest.raises(WrongInput) as raised:
        find_gpu(text)
    assert "MI300X" in str(raised.value.fix)
    assert "nvidia-smi" not in str(raised.value.fix)
