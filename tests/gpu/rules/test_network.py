"""Over what NCCL can talk between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import NVIDIA, audit, codes, environment, library, torch

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gpu.small_images import Files

LIB = "usr/lib/x86_64-linux-gnu"
NCCL: Files = {f"{NVIDIA}/nccl/lib/libnccl.so.2": library(soname="libnccl.so.2")}
VERBS: Files = {f"{LIB}/libibverbs.so.1": library(soname="libibverbs.so.1")}
PROVIDERS: Files = {f"{LIB}/libibverbs/lib{name}-rdmav34.so": library() for name in ("mlx5", "mlx4", "siw")}
PLUGIN: Files = {"opt/plugin/lib/libnccl-net.so": library(), "opt/plugin/lib/libnccl-net-ofi.so": library()}


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        ([], "nccl-tcp-only", "the image has no libibverbs, and no network plug-in"),
        ([VERBS], "nccl-tcp-only", "libibverbs, but no provider library for it"),
        ([VERBS, PROVIDERS], "nccl-network", "InfiniBand and RoCE (libibverbs with mlx5)"),
        ([PLUGIN], "nccl-tcp-only", "no network plug-in"),
        ([PLUGIN, environment("export LD_LIBRARY_PATH=/opt/plugin/lib")], "nccl-network",
         "the plug-in libnccl-net"),
    ],
)  # fmt: skip
def test_what_nccl_can_use_between_nodes(tmp_path: Path, parts: list[Files], code: str, words: str) -> None:
    found = audit(tmp_path, torch(), NCCL, *parts)
    assert words in codes(found)[code]
    assert found.verdict.value == "gpu-ready"


def test_an_image_without_nccl_has_nothing_to_say_of_networks(tmp_path: Path) -> None:
    found = audit(tmp_path, torch(), VERBS, environment("export NCCL_IB_DISABLE=1"))
    assert not [code for code in codes(found) if code.startswith("nccl")]


@pytest.mark.parametrize(
    ("script", "disabled"),
    [
        ("export NCCL_IB_DISABLE=1", True),
        ("export NCCL_NET=Socket", True),
        ("export NCCL_IB_DISABLE=0", False),
        ("export NCCL_NET=IB", False),
    ],
)
def test_a_variable_of_the_image_takes_the_network_from_nccl(tmp_path: Path, script: str, disabled: bool) -> None:
    found = audit(tmp_path, torch(), NCCL, VERBS, PROVIDERS, environment(script))
    assert ("nccl-rdma-disabled" in codes(found)) is disabled
