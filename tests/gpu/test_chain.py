"""The chain: its links in order, and where it ends."""

from __future__ import annotations

from tests.gpu.links.seen import HOST, NO_HOST, probe, working
from toolkit.gpu.chain import Chain, LinkState, Subject, driver_links, whole_chain
from toolkit.gpu.framework_check import FrameworkCheck, Product
from toolkit.gpu.links.model import Seen
from toolkit.gpu.verdicts import GpuVerdict

GOOD = FrameworkCheck("torch", True, "2.5", count=1, products=(Product(0, 0.1, 0.0, True),))
BLIND = FrameworkCheck("jax", True, "0.6", reason="CPU only")


def states(chain: Chain) -> list[str]:
    return [f"{link.name} {link.state}" for link in chain.links]


def test_chain_ends_where_it_breaks() -> None:
    broken = whole_chain(driver_links(Seen(HOST, probe(cuda_init=999)), None), [Subject("torch", "PyTorch", GOOD)])
    assert broken.verdict is GpuVerdict.NOT_VISIBLE
    assert states(broken)[:3] == ["host holds", "runtime holds", "driver broken"]
    assert [link.state for link in broken.links[3:]] == [LinkState.UNREACHED, LinkState.UNREACHED]
    assert states(driver_links(Seen(NO_HOST, probe()), None))[0] == "host broken"


def test_visible_gpu_without_framework() -> None:
    begun = driver_links(Seen(HOST, working()), None)
    assert whole_chain(begun, []).verdict is GpuVerdict.VISIBLE
    unchecked = whole_chain(begun, [Subject("torch", "PyTorch")])
    assert (unchecked.verdict, states(unchecked)[3:]) == (
        GpuVerdict.VISIBLE,
        ["framework unchecked", "capability holds"],
    )


def test_worst_framework_decides() -> None:
    begun = driver_links(Seen(HOST, working()), None)
    assert whole_chain(begun, [Subject("torch", "PyTorch", GOOD)]).verdict is GpuVerdict.USED
    both = whole_chain(begun, [Subject("torch", "PyTorch", GOOD), Subject("jax", "JAX", BLIND)])
    assert both.verdict is GpuVerdict.CPU_FALLBACK
    assert states(both)[3:] == ["framework holds", "capability holds", "framework broken", "capability unreached"]
    assert len(both.findings) == len(set(both.findings))
