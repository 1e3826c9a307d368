"""JAX: `jaxlib` alone is for the CPU; the GPU comes with a plugin in two more distributions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.inventory.formats.literals import calls, read_assignments
from toolkit.inventory.knowledge.builds import FrameworkBuild, Preload, Want
from toolkit.inventory.knowledge.cuda_libraries import major_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.inventory.contents.model import Distribution
    from toolkit.inventory.knowledge.builds import Installed

# Compute capabilities that the plugins ask for. Source: JAX's installation page, August 2026.
_MIN = {"12": "compute_52", "13": "compute_75"}
# What the plugins before 0.6 open by name: their `__init__.py` preloads nothing, their RPATH finds NVIDIA's wheels.
# Source: `_check_cuda_versions` in jax/_src/xla_bridge.py of 0.4.35, and the sonames in those wheels; for CUDA 11,
# which was in jaxlib itself, cuda_config.h of TensorFlow 2.12, which opens them by the same code.
_UNTOLD = {
    "12": (
        "libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcusolver.so.11",
        "libcusparse.so.12",
    ),
    "11": (
        "libcudart.so.11.0", "libcublas.so.11", "libcublasLt.so.11", "libcufft.so.10", "libcusolver.so.11",
        "libcusparse.so.11",
    ),
}  # fmt: skip
_OPTIONAL = ("libcupti", "libnccl", "libnvshmem_host", "libnvrtc")
_PLUGIN = re.compile(r"^jax-cuda(\d+)-plugin$")
_ROCM_PLUGIN = re.compile(r"^jax-rocm(\d)(\d*)-plugin$")
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


def plugin_major(names: list[str]) -> str | None:
    """The CUDA major of the plugin among normalized distribution names, the newest if there are several."""
    majors = [match[1] for match in map(_PLUGIN.match, names) if match]
    return max(majors, key=int, default=None)


def read_build(installed: Installed) -> FrameworkBuild:
    """Build facts. Source: the wheels of jaxlib, jax-cuda12-plugin 0.4.35 and 0.6.2, jax-cuda13-pjrt 0.7.2."""
    return replace(_read_parts(installed), accepts=(("jaxlib", _accepted_jaxlib(installed)),))


def _accepted_jaxlib(installed: Installed) -> str:
    """JAX refuses a jaxlib that is newer than itself, or older than it says.

    Source: `check_jaxlib_version` in jax/_src/lib/__init__.py of 0.4.25 and 0.6.2.
    """
    assigned = read_assignments(installed.rootfs, f"{installed.distribution.directory}/jax/version.py") or {}
    oldest = assigned.get("_minimum_jaxlib_version")
    release = _NUMBERS.match(installed.distribution.version)
    newest = f"<={release.group() if release else installed.distribution.version}"
    return f">={oldest},{newest}" if isinstance(oldest, str) else newest


def _read_parts(installed: Installed) -> FrameworkBuild:
    jaxlib = installed.visible.get("jaxlib")
    version = installed.distribution.version
    if jaxlib is None:
        return FrameworkBuild(version, gpu=False, complete=False)
    local = re.search(r"\+cuda(\d\d)(\d?)(?:\.cudnn(\d))?", jaxlib.version)
    if local:  # until 0.4.29 the GPU was in jaxlib itself, from an index of Google's
        return _in_jaxlib(installed, jaxlib, *local.groups())
    major = plugin_major(list(installed.visible))
    if major is None:
        return _for_rocm(installed, version)
    pjrt = installed.visible.get(f"jax-cuda{major}-pjrt")
    directory = f"{(pjrt or installed.visible[f'jax-cuda{major}-plugin']).directory}/jax_plugins/xla_cuda{major}"
    plugin = f"{directory}/xla_cuda_plugin.so"
    text = installed.rootfs.read_text(f"{directory}/__init__.py", 1 << 18) or ""
    told = sonames(text, major)
    names = told or untold_sonames(major, installed.visible[f"jax-cuda{major}-plugin"].requires)
    there = installed.rootfs.is_file(plugin)
    return FrameworkBuild(
        version=version,
        gpu=True,
        cuda=major,
        cudnn=major_of(names, "libcudnn"),
        architectures=(_MIN[major],) if major in _MIN else (),
        wants=tuple(Want(soname, plugin, required=not soname.startswith(_OPTIONAL)) for soname in names),
        complete=pjrt is not None and there,
        opens=(plugin,) if there else (),
        preloads=(Preload("before", tuple(name.partition(".so")[0] for name in told)),) if told else (),
    )


def _for_rocm(installed: Installed, version: str) -> FrameworkBuild:
    """A plugin for AMD's GPUs, by its names: jax-rocm60-plugin 0.5.0 and jax-rocm7-plugin 0.9.2; else for the CPU."""
    match = next(filter(None, map(_ROCM_PLUGIN.match, installed.visible)), None)
    if match is None:
        return FrameworkBuild(version, gpu=False)
    pjrt = installed.visible.get(f"jax-rocm{match[1]}{match[2]}-pjrt")
    library = f"jax_plugins/xla_rocm{match[1]}{match[2]}/xla_rocm_plugin.so"
    complete = pjrt is not None and installed.rootfs.is_file(f"{pjrt.directory}/{library}")
    return FrameworkBuild(version, gpu=True, rocm=match[1], complete=complete)


def _in_jaxlib(installed: Installed, jaxlib: Distribution, major: str, minor: str, cudnn: str | None) -> FrameworkBuild:
    """A jaxlib that holds the GPU code: 0.4.13+cuda11.cudnn86, earlier 0.1.69+cuda111 and 0.1.55+cuda101."""
    library = f"{jaxlib.directory}/jaxlib/xla_extension.so"
    names = [*_UNTOLD.get(major, ()), *([f"libcudnn.so.{cudnn}"] if cudnn else [])]
    return FrameworkBuild(
        installed.distribution.version,
        gpu=True,
        cuda=f"{major}.{minor}" if minor else major,
        cudnn=cudnn,
        wants=tuple(Want(soname, library) for soname in names),
        opens=(library,) if installed.rootfs.is_file(library) else (),
    )


def sonames(initialisation: str, major: str) -> list[str]:
    """The libraries that the plugin's `__init__.py` preloads: `_load("cublas", ["libcublas.so.12", …])`.

    The one for CUDA 13 lists those of 12 beside its own, which it finds in the directory `nvidia/cu13`.
    """
    loads = [arguments for arguments in calls(initialisation, "_load") if len(arguments) == 2]
    own = {
        name.partition(".so")[0]: name
        for directory, names in loads
        if directory == f"cu{major}"
        for name in _texts(names)
    }
    found: dict[str, None] = {}
    for directory, names in loads:
        if not re.fullmatch(r"cu\d+", str(directory)) or directory == f"cu{major}":
            found.update(dict.fromkeys(own.get(name.partition(".so")[0], name) for name in _texts(names)))
    return list(found)


def untold_sonames(major: str, requires: Iterable[str]) -> list[str]:
    """The libraries of a plugin that does not list them; which cuDNN it was made for, its Requires-Dist says."""
    found = list(_UNTOLD.get(major, ()))
    for line in requires:
        match = re.match(rf"nvidia-cudnn-cu{major}\b.*>=\s*(\d+)", line)
        if found and match:
            return [*found, f"libcudnn.so.{match[1]}"]
    return found


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
