"""CuPy: the `_wheel.json` of its wheels, and what its modules are linked with."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolkit.inventory.formats.literals import read_assignments
from toolkit.inventory.knowledge.builds import FrameworkBuild, Preload, Want
from toolkit.inventory.knowledge.frameworks import satisfies

if TYPE_CHECKING:
    from toolkit.inventory.knowledge.builds import Installed

# cupy imports these; the rest (cudnn, cutensor, nccl, nvtx) only if they are there.
_LINKED = ("cublas", "curand", "cusolver", "cusparse")
_FOUND = (
    "libcudart",
    "libcublasLt",
    "libcublas",
    "libcurand",
    "libnvJitLink",
    "libcusparse",
    "libcusolver",
    "libnvrtc",
)
_DIRECTORIES = ("cupy_backends/cuda/libs", "cupy/cuda")  # until 7.8 its modules lay beside its own


def read_build(installed: Installed) -> FrameworkBuild:
    """Build facts: every build is for a GPU.

    Source: the wheels cupy-cuda92 7.8.0, cupy-cuda12x 13.6.0, cupy-cuda13x 14.2.0.
    """
    rootfs, directory = installed.rootfs, installed.directory
    version = str((read_assignments(rootfs, f"{directory}/cupy/_version.py") or {}).get("__version__") or "")
    modules = [
        f"{directory}/{libraries}/{name}"
        for libraries in _DIRECTORIES
        for name in rootfs.names(f"{directory}/{libraries}")
        if name.startswith(tuple(f"{linked}." for linked in (*_LINKED, "nvrtc"))) and name.endswith(".so")
    ]
    cuda = _cuda(installed)
    nvrtc = nvrtc_soname(cuda)
    wants = (Want(nvrtc, next((module for module in modules if "/nvrtc." in module), "")),) if nvrtc else ()
    return FrameworkBuild(
        version=version,
        gpu=True,
        cuda=cuda,
        wants=wants,
        complete=rootfs.is_directory(f"{directory}/cupy"),
        opens=tuple(modules),
        # From 14 on it asks cuda-pathfinder, which looks into NVIDIA's wheels first.
        preloads=(Preload("before", _FOUND),) if satisfies(version, ">=14") else (),
    )


def _cuda(installed: Installed) -> str | None:
    """ "12" of "12.x", "9.2" of "9.2": from `_wheel.json`, else from the distribution's name (cupy-cuda92)."""
    try:
        content = json.loads(
            installed.rootfs.read_text(f"{installed.directory}/cupy/.data/_wheel.json", 1 << 16) or "{}"
        )
    except (ValueError, RecursionError):
        content = {}
    cuda = content.get("cuda") if isinstance(content, dict) else None
    if isinstance(cuda, str):
        return cuda.removesuffix(".x")
    match = re.fullmatch(r"cupy-cuda(\d+)(\d|x)", installed.distribution.name)
    if match is None:
        return None
    return match[1] if match[2] == "x" else f"{match[1]}.{match[2]}"


def nvrtc_soname(cuda: str | None) -> str | None:
    """The NVRTC that compiles every kernel and is opened by name: libnvrtc.so.11.2 for CUDA 11.x, .so.12, .so.13.

    None for older ones, which are linked with it: before 11.2 each release had a soname of its own.

    Source: the names in cupy_backends/cuda/libs/nvrtc of cupy-cuda12x 13.6.0; DT_NEEDED of cupy-cuda110 9.6.0.
    """
    if cuda in ("11.0", "11.1"):
        return None
    major = (cuda or "").partition(".")[0]
    return {"11": "libnvrtc.so.11.2", "12": "libnvrtc.so.12", "13": "libnvrtc.so.13"}.get(major)
