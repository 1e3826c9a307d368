"""PyTorch: `torch/version.py`, the needs of its CUDA libraries, and the architectures it names in libtorch_python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.builds.wanted import each_once, major_of, wants_of
from toolkit.gpu.elf import read_only_data
from toolkit.gpu.facts import Build
from toolkit.gpu.literals import read_assignments

if TYPE_CHECKING:
    from toolkit.gpu.builds import Installed
    from toolkit.inventory.rootfs import Rootfs

# From 1.9 to 1.13 libtorch_cuda came in two halves; until 1.4 all was in libtorch.
_LIBRARIES = (
    "libtorch_cuda.so", "libc10_cuda.so", "libtorch_global_deps.so", "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so",
    "libtorch.so",
)  # fmt: skip
_CUDA_CODE = (("libtorch_cuda.so",), ("libtorch_cuda_cu.so",), ("libtorch.so", "libc10_cuda.so"))
_ARCHITECTURES = re.compile(rb"\b(?:sm|compute)_\d+a?(?: (?:sm|compute)_\d+a?)+\b|\bsm_\d+a?\0")


def read_build(installed: Installed) -> Build:
    """What torch says. Source: `torch/version.py` of the wheels 1.4.0, 2.5.1 and 2.11.0; torch.cuda.get_arch_list."""
    rootfs, folder = installed.rootfs, f"{installed.folder}/torch"
    version = read_assignments(rootfs, f"{folder}/version.py")
    if version is None:
        return Build("", gpu=False, complete=False)
    cuda = version.get("cuda")
    name = str(version.get("__version__") or "")
    if not isinstance(cuda, str):
        return Build(name, gpu=False)
    wants = each_once(want for library in _LIBRARIES for want in wants_of(rootfs, f"{folder}/lib/{library}"))
    return Build(
        version=name,
        gpu=True,
        cuda=cuda,
        cudnn=major_of(wants, "libcudnn"),
        architectures=_architectures(read_only_data(rootfs, f"{folder}/lib/libtorch_python.so")),
        wants=wants,
        complete=_holds_cuda_code(rootfs, f"{folder}/lib", name),
    )


def _holds_cuda_code(rootfs: Rootfs, folder: str, version: str) -> bool:
    known = _CUDA_CODE if version.startswith(("0.", "1.")) else _CUDA_CODE[:2]
    return any(all(rootfs.is_file(f"{folder}/{library}") for library in libraries) for libraries in known)


def _architectures(texts: bytes) -> tuple[str, ...]:
    """The longest list of architectures among the texts."""
    found = max(_ARCHITECTURES.findall(texts), key=len, default=b"")
    return tuple(found.rstrip(b"\0").decode().split())
