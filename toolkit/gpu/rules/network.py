"""Over what NCCL can talk between nodes. Falling back to TCP is as silent as falling back to the CPU."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from toolkit.gpu.rules.doubts import doubted
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import ImageCase, Network

# Providers of the networks of GPU nodes, the most common first: NVIDIA, AWS, Intel, Broadcom.
_COMMON = ("mlx5", "efa", "irdma", "bnxt_re")
_ADD = (
    "For jobs on several nodes with InfiniBand or RoCE, install libibverbs1, ibverbs-providers and rdma-core with apt "
    "(`apt` of a recipe). Apptainer shows /dev/infiniband in the container, but not with --contain."
)


def nccl_network(case: ImageCase) -> Iterator[Finding]:
    """NCCL in the image, and what it needs for InfiniBand, RoCE or another fast network."""
    if not _has_nccl(case):
        return
    network = case.image.network
    if network.plugins or (network.verbs and network.providers):
        yield Finding("nccl-network", Severity.INFO, f"Between nodes, NCCL can use {_ways(network)}.")
    else:
        lacking = "libibverbs, but no provider library for it" if network.verbs else "no libibverbs"
        yield Finding(
            "nccl-tcp-only",
            Severity.INFO,
            f"Between nodes, NCCL uses TCP: the image has {lacking}, and no network plug-in.",
            _ADD,
        )


def nccl_rdma_disabled(case: ImageCase) -> Iterator[Finding]:
    """A variable of the image that takes the fast network from NCCL."""
    if not _has_nccl(case):
        return
    inventory = case.image.inventory
    for name, values in (("NCCL_IB_DISABLE", ("1",)), ("NCCL_NET", ("socket",))):
        value = inventory.variable(name)
        if value.strip().lower() in values:
            finding = Finding(
                "nccl-rdma-disabled",
                Severity.WARNING,
                f"The image sets {name}={value}: between nodes, NCCL does not use InfiniBand or RoCE.",
                "Remove it from the image's environment; set it in the job if needed.",
            )
            yield doubted(finding, inventory.doubt(name))


def _has_nccl(case: ImageCase) -> bool:
    return any(library.name == "nccl" for library in case.image.libraries)


def _ways(network: Network) -> str:
    ways = [f"the plug-in {posixpath.basename(path)} ({posixpath.dirname(path)})" for path in network.plugins[:2]]
    if network.verbs and network.providers:
        named = [name for name in _COMMON if name in network.providers] or list(network.providers[:3])
        ways.append(f"InfiniBand and RoCE (libibverbs with {', '.join(named)})")
    return " or ".join(ways)
