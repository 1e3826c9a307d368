"""TensorFlow: its generated `build_info.py`, and the library versions in its `cuda_config.h`.

It opens CUDA's libraries by name when it first looks for a GPU, so that no ELF file says which ones it wants.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from toolkit.inventory.formats.literals import read_assignments
from toolkit.inventory.knowledge.builds import FrameworkBuild, Want
from toolkit.inventory.knowledge.cuda_libraries import linked_cuda_libraries, major_of

if TYPE_CHECKING:
    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.inventory.knowledge.builds import Installed

_HEADERS = (
    "include/third_party/gpus/cuda/cuda_config.h",
    "include/external/local_config_cuda/cuda/cuda/cuda_config.h",
    "include/third_party/gpus/cuda/cuda/cuda_config.h",
)
# What an import loads. The code that opens CUDA's libraries (tsl, stream_executor's dso_loader) is in the framework's
# library: its DT_RUNPATH counts, not those of the others (TensorFlow issue 63362). Before 1.4 there is only the first.
_LOADED = (
    "python/_pywrap_tensorflow_internal.so", "libtensorflow_cc.so.2", "libtensorflow_framework.so.2",
    "libtensorflow_framework.so.1", "libtensorflow_framework.so",
)  # fmt: skip
# "Cannot dlopen some GPU libraries" is said where one of these is missing. Source: TensorFlow, gpu_device.cc and
# stream_executor's MaybeTryDlopenGPULibraries.
_LIBRARIES = ("CUDART", "CUBLAS", "CUFFT", "CUSOLVER", "CUSPARSE", "CUDNN")


def read_build(installed: Installed) -> FrameworkBuild:
    """Build facts. Source: the wheels tensorflow-gpu 1.4.1, 1.12.0, 2.0.0; tensorflow 2.1.0 to 2.18.1."""
    rootfs = installed.rootfs
    for package in ("tensorflow", "tensorflow_core"):  # 1.15 to 2.1 keep their code in tensorflow_core
        directory = f"{installed.directory}/{package}"
        assigned = read_assignments(rootfs, f"{directory}/python/platform/build_info.py")
        if assigned is not None:
            break
    else:
        return FrameworkBuild("", gpu=False, complete=False)
    info = _information(assigned)
    if info.get("is_rocm_build"):
        return FrameworkBuild("", gpu=True, rocm=_rocm(rootfs, directory))
    if not info.get("is_cuda_build"):
        return FrameworkBuild("", gpu=False)
    defined = _defined(rootfs, directory)
    # Until 2.2 build_info says "10" where the build is for 10.0 or 10.1, whose libraries have different names.
    cuda = str(_version(defined, "CUDA") or info.get("cuda_version") or info.get("cuda_version_number") or "")
    cudnn = str(info.get("cudnn_version") or info.get("cudnn_version_number") or "")
    opens = tuple(path for name in _LOADED if rootfs.is_file(path := f"{directory}/{name}"))
    opener = next((path for path in opens[::-1] if "framework" in path), next(iter(opens), ""))
    wants = tuple(Want(soname, opener) for soname in sonames(cuda, cudnn, defined))
    if not wants:  # until 1.12 nothing names them, and the libraries are linked
        linked = linked_cuda_libraries(installed, opens)
        own = major_of(linked, "libcudart")
        return FrameworkBuild("", gpu=True, cuda=own, cudnn=major_of(linked, "libcudnn"), opens=opens)
    return FrameworkBuild(
        version="",
        gpu=True,
        cuda=cuda or None,
        cudnn=cudnn or None,
        architectures=_architectures(info, defined),
        wants=wants,
        opens=opens,
    )


def _information(assigned: dict[str, Any]) -> dict[str, Any]:
    """The build's own words: OrderedDict([(name, value), ...]) from 2.3 on, plain assignments before."""
    pairs = assigned.get("build_info", assigned)
    try:
        return dict(pairs)
    except (TypeError, ValueError):
        return {}


def _defined(rootfs: Rootfs, directory: str) -> dict[str, str]:
    for header in _HEADERS:
        text = rootfs.read_text(f"{directory}/{header}", 1 << 16)
        if text:
            return {
                name: value.strip() for name, value in re.findall(r"^#define (TF_\w+)[ \t]*(.*)$", text, re.MULTILINE)
            }
    return {}


def sonames(cuda: str, cudnn: str, defined: dict[str, str]) -> list[str]:
    """The libraries that are opened by name, as far as the build says their versions.

    `defined` is cuda_config.h: one version a library from 2.3 on, since 1.14 one for all but cudart, before it CUDA's.
    """
    found = []
    for library in _LIBRARIES:
        version = _version(defined, library)
        if library == "CUDNN":
            version = version or cudnn
        elif library == "CUDART":
            version = version or cuda
        else:
            version = version or _version(defined, "CUDA_LIB") or _version(defined, "CUDA")
        if version:
            found.append(f"lib{library.lower()}.so.{version}")
    return found


def _rocm(rootfs: Rootfs, directory: str) -> str:
    """ "6.0.0" of TF_ROCM_VERSION 60000; "" if nothing says it. Source: the wheel tensorflow-rocm 2.14.0.600."""
    text = rootfs.read_text(f"{directory}/include/external/local_config_rocm/rocm/rocm/rocm_config.h", 1 << 16) or ""
    match = re.search(r"^#define TF_ROCM_VERSION (\d+)(\d\d)(\d\d)$", text, re.MULTILINE)
    return ".".join(str(int(part)) for part in match.groups()) if match else ""


def _version(defined: dict[str, str], library: str) -> str | None:
    return defined.get(f"TF_{library}_VERSION", "").strip('"') or None


def _architectures(info: dict[str, Any], defined: dict[str, str]) -> tuple[str, ...]:
    """The architectures as nvcc names them. To TensorFlow, compute_80 is binary code for 8.0 and PTX (configure.py)."""
    named = info.get("cuda_compute_capabilities")
    if isinstance(named, list):
        both = [(str(architecture).replace("compute_", "sm_"), str(architecture)) for architecture in named]
        return tuple(dict.fromkeys(name for pair in both for name in pair))
    numbers = re.findall(r'CudaVersion\("(\d+)\.(\d+)"\)', defined.get("TF_CUDA_CAPABILITIES", ""))
    return tuple(f"sm_{major}{minor}" for major, minor in numbers)
