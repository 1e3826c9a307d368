"""From a library's needs to what the framework wants of CUDA."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.elf import read_dynamic
from toolkit.gpu.facts import Want
from toolkit.gpu.loader import expanded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.inventory.rootfs import Rootfs

# NVIDIA's libraries; a wheel that carries them itself adds a hash to the name (libcudart-d0da41ae.so.11.0).
# libcuda and libnvidia-ml are the driver's: --nv brings them.
_CUDA_LIBRARY = re.compile(
    r"^lib(cudart|cublas|cublasLt|cudnn\w*|cufft|cufile|curand|cusolver|cusparse|cusparseLt|cupti|nccl|nvrtc|nvJitLink"
    r"|nvshmem_host|nvToolsExt|cutensor)(-[0-9a-f]{8})?\.so(\.[0-9.]+)?$"
)


def wants_of(rootfs: Rootfs, library: str) -> tuple[Want, ...]:
    """The CUDA libraries that the ELF file `library` is linked with, and where it looks for them itself."""
    dynamic = read_dynamic(rootfs, library)
    if dynamic is None:
        return ()
    search = expanded(dynamic.search, library)
    return tuple(Want(name, library, search) for name in dynamic.needed if _CUDA_LIBRARY.match(name))


def search_of(rootfs: Rootfs, libraries: Iterable[str]) -> tuple[str, ...]:
    """Where `libraries` look for what they load, one after the other."""
    found: dict[str, None] = {}
    for library in libraries:
        dynamic = read_dynamic(rootfs, library)
        if dynamic is not None:
            found.update(dict.fromkeys(expanded(dynamic.search, library)))
    return tuple(found)


def each_once(wants: Iterable[Want]) -> tuple[Want, ...]:
    """The first want of each library."""
    found: dict[str, Want] = {}
    for want in wants:
        found.setdefault(want.soname, want)
    return tuple(found.values())


def major_of(wants: Iterable[Want], stem: str) -> str | None:
    """The number behind `stem.so.` among the wants: "9" of libcudnn.so.9."""
    for want in wants:
        name, _, number = want.soname.partition(".so.")
        if name.partition("-")[0] == stem and number:
            return number
    return None
