"""PaddlePaddle: `paddle/version/__init__.py`, and the code in the library that holds its GPU operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.formats.elf import read_architectures
from toolkit.inventory.formats.literals import read_assignments
from toolkit.inventory.knowledge.builds import FrameworkBuild, Want

if TYPE_CHECKING:
    from toolkit.inventory.knowledge.builds import Installed

_MODULES = ("base/libpaddle.so", "fluid/libpaddle.so")  # `fluid` until 2.5
_OPERATORS = ("libs/libphi.so", *_MODULES)  # from 2.6 on in a library of their own
# It opens them by names without a version, which NVIDIA's development packages alone have: cuBLAS and cuDNN for every
# model, the others at the first call of an operator that needs them. Source: phi/backends/dynload/dynamic_loader.cc of
# 2.6, without WITH_PIP_CUDA_LIBRARIES; the wheel 2.6.2 asks the loader for these names (LD_DEBUG=libs, 2026-11-22).
_REQUIRED = ("libcublas.so", "libcublasLt.so", "libcudnn.so")
_OPTIONAL = ("libcurand.so", "libcusolver.so", "libcusparse.so", "libcufft.so", "libnvrtc.so", "libnccl.so")


def read_build(installed: Installed) -> FrameworkBuild:
    """Build facts. Source: the wheels of paddlepaddle-gpu 2.5.2 and 2.6.2, and of paddlepaddle 2.6.2.

    Builds that load CUDA from NVIDIA's wheels (from 3 on) name their directories to it: those are not judged here.
    """
    rootfs, directory = installed.rootfs, f"{installed.directory}/paddle"
    version = read_assignments(rootfs, f"{directory}/version/__init__.py")
    if version is None:
        return FrameworkBuild("", gpu=False, complete=False)
    release = str(version.get("full_version") or "")
    opens = tuple(path for name in _MODULES if rootfs.is_file(path := f"{directory}/{name}"))
    cuda, cudnn = _number(version.get("cuda_version")), _number(version.get("cudnn_version"))
    if cuda is None:
        return FrameworkBuild(release, gpu=False, complete=bool(opens))
    operators = next((path for name in _OPERATORS if rootfs.is_file(path := f"{directory}/{name}")), "")
    by_name = version.get("with_pip_cuda_libraries") != "ON"
    return FrameworkBuild(
        version=release,
        gpu=True,
        cuda=cuda,
        cudnn=cudnn,
        architectures=read_architectures(rootfs, operators),
        wants=tuple(Want(name, operators, name in _REQUIRED) for name in (*_REQUIRED, *_OPTIONAL)) if by_name else (),
        complete=bool(opens),
        opens=opens,
    )


def _number(value: object) -> str | None:
    """ "11.8"; None for what a build without CUDA has there: "False"."""
    return value if isinstance(value, str) and value[:1].isdigit() else None
