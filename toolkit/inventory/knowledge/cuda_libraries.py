"""The CUDA libraries that a framework needs, from the ELF files of its libraries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.inventory.knowledge.builds import Installed

# NVIDIA's libraries; a wheel that carries them itself adds a hash to the name (libcudart-d0da41ae.so.11.0).
# libcuda and libnvidia-ml are the driver's: --nv brings them.
_CUDA_LIBRARY = re.compile(
    r"^lib(cudart|cublas|cublasLt|cudnn\w*|cufft|cufile|curand|cusolver|cusparse|cusparseLt|cupti|nccl|nvrtc|nvJitLink"
    r"|nvshmem_host|nvToolsExt|cutensor)(-[0-9a-f]{8})?\.so(\.[0-9.]+)?$"
)


def is_cuda_library(name: str) -> bool:
    """Whether a file name is that of a CUDA library."""
    return _CUDA_LIBRARY.match(name) is not None


def linked_cuda_libraries(installed: Installed, libraries: Iterable[str]) -> tuple[str, ...]:
    """The names of the CUDA libraries that the ELF files `libraries` are linked with, each once."""
    found: dict[str, None] = {}
    for library in libraries:
        dynamic = installed.dynamic(library)
        if dynamic is not None:
            found.update(dict.fromkeys(filter(is_cuda_library, dynamic.needed)))
    return tuple(found)


def major_of(sonames: Iterable[str], stem: str) -> str | None:
    """The number behind `stem.so.` among the names: "9" of libcudnn.so.9."""
    for soname in sonames:
        name, _, number = soname.partition(".so.")
        if name.partition("-")[0] == stem and number:
            return number
    return None
