"""ONNX Runtime: `build_and_package_info.py`, and what its CUDA provider is linked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.formats.literals import read_assignments
from toolkit.inventory.knowledge.builds import FrameworkBuild
from toolkit.inventory.knowledge.cuda_libraries import linked_cuda_libraries, major_of

if TYPE_CHECKING:
    from toolkit.inventory.knowledge.builds import Installed


def read_build(installed: Installed) -> FrameworkBuild:
    """Build facts. Source: the wheels onnxruntime-gpu 1.22.0 and onnxruntime 1.20.1."""
    rootfs, directory = installed.rootfs, f"{installed.directory}/onnxruntime/capi"
    if not rootfs.is_directory(directory):
        return FrameworkBuild("", gpu=False, complete=False)
    info = read_assignments(rootfs, f"{directory}/build_and_package_info.py") or {}
    provider = f"{directory}/libonnxruntime_providers_cuda.so"
    version = str(info.get("__version__") or "")
    if not rootfs.is_file(provider):
        return FrameworkBuild(version, gpu=False)
    linked = linked_cuda_libraries(installed, [provider])
    cuda = info.get("cuda_version")
    if not isinstance(cuda, str):  # libcudart.so.11.0 is that of every 11.x
        cuda = (major_of(linked, "libcudart") or "").partition(".")[0] or None
    return FrameworkBuild(
        version=version,
        gpu=True,
        cuda=cuda,
        cudnn=major_of(linked, "libcudnn"),
        opens=(provider,),
    )
