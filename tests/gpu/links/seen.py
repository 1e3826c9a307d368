"""What the tests of the links see: a GPU node and a V100, and changes to them."""

from __future__ import annotations

from toolkit.gpu.host import HostGpu, Vendor
from toolkit.gpu.links.model import Judged, Seen
from toolkit.gpu.probe import Device, Managed, Probe

HOST = HostGpu("550.54.15", ("/dev/nvidia0",))
NO_HOST = HostGpu(None, ())
AMD = HostGpu("6.8.5", ("/dev/kfd", "/dev/dri/renderD128"), Vendor.AMD)
BOUND = ("libEGL.so.1", "libcuda.so.1", "libnvidia-ml.so.1")
V100 = Device("Tesla V100S", (7, 0), 32 << 30, "a0", 0)
SHOWN = Managed(0, uuid="GPU-a0", memory_total=32 << 30, memory_free=31 << 30, compute_mode=0)
NOT_LOADED = "libcuda.so.1: cannot open shared object file: No such file or directory"


def probe(**changes: object) -> Probe:
    """A probe of a container with the driver's libraries; the driver shows nothing yet."""
    return Probe(**{"python": "3.11.2", "bound_libraries": BOUND, **changes})  # type: ignore[arg-type]


def working(**changes: object) -> Probe:
    return probe(**{"devices": (V100,), "managed": (SHOWN,), "cuda_init": 0, "cuda_version": 12040, **changes})


def seen(host: HostGpu = HOST, **changes: object) -> Seen:
    return Seen(host, probe(**changes))


def codes(judged: Judged) -> list[str]:
    return [finding.code for finding in judged.findings]
