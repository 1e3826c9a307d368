"""Small images with real libraries, as builds of frameworks leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.inventory.making import distribution, fill, python_files
from tests.real.wheels import elf
from toolkit.gpu.audit import Audit, audit_image
from toolkit.gpu.facts import TargetMachine

if TYPE_CHECKING:
    from pathlib import Path


Files = dict[str, Any]


SITE = "usr/local/lib/python3.11/site-packages"


NVIDIA = f"{SITE}/nvidia"


READY = {"minimum-driver", "gpu-generations", "user-site-enabled"}


def library(*needed: str, runpath: str = "", rpath: str = "", soname: str = "", symbols: str = "") -> bytes:
    return elf(list(needed), runpath or rpath, bool(runpath), "", soname, symbols)


def audit(directory: Path, *parts: Files) -> Audit:
    for part in (python_files(), *parts):
        fill(directory, part)
    return audit_image(directory, TargetMachine())


def codes(found: Audit) -> dict[str, str]:
    return {finding.code: finding.message for finding in found.findings}


def environment(text: str, name: str = "90-environment") -> Files:
    return {f".singularity.d/env/{name}.sh": text}


def torch(version: str = "2.5.1", cudnn: str = "9.1.0.70", extra: str = "", without: str = "") -> Files:
    """A small torch with its CUDA libraries in NVIDIA's wheels."""
    rpath = ":".join(f"$ORIGIN/../../nvidia/{directory}/lib" for directory in ("cudnn", "cusparse", "cuda_runtime"))
    files = {
        "torch/__init__.py": "", "torch/version.py": f"__version__ = '{version}+cu124'\ncuda = '12.4'\n",
        "torch/lib/libtorch_global_deps.so": library("libcudart.so.12", rpath=rpath),
        "torch/lib/libtorch_cuda.so": library(
            "libc10_cuda.so", "libcudnn.so.9", "libcusparse.so.12", rpath=f"{rpath}:$ORIGIN", soname="libtorch_cuda.so"
        ),
        "torch/lib/libc10_cuda.so": library("libcudart.so.12", rpath=rpath, soname="libc10_cuda.so"),
    }  # fmt: skip
    wheel = distribution("torch", version, SITE, files, f"Requires-Dist: nvidia-cudnn-cu12==9.1.0.70\n{extra}")
    parts = [f"nvidia/cudnn/lib/libcudnn{part}.so.9" for part in ("", "_graph", "_ops", "_cnn", "_adv", "_heuristic")]
    parts += ["nvidia/cudnn/lib/libcudnn_engines_runtime_compiled.so.9"]
    link = "$ORIGIN:$ORIGIN/../../nvjitlink/lib"
    made = {
        **wheel,
        **distribution("nvidia-cudnn-cu12", cudnn, SITE, {
            part: library(soname=part.rpartition("/")[2], runpath="$ORIGIN") for part in parts
        }),
        f"{NVIDIA}/cuda_runtime/lib/libcudart.so.12": library(soname="libcudart.so.12"),
        f"{NVIDIA}/cusparse/lib/libcusparse.so.12": library(
            "libnvJitLink.so.12", runpath=link, soname="libcusparse.so.12", symbols="__nvJitLinkComplete_12_4"
        ),
        f"{NVIDIA}/nvjitlink/lib/libnvJitLink.so.12": nvjitlink("12_3 12_4"),
    }  # fmt: skip
    return {path: content for path, content in made.items() if not without or not path.endswith(without)}


def nvjitlink(releases: str) -> bytes:
    return library(
        soname="libnvJitLink.so.12", symbols=" ".join(f"__nvJitLinkComplete_{release}" for release in releases.split())
    )


def jax(jax: str = "0.6.2", jaxlib: str = "0.6.2", extra: Files | None = None) -> Files:
    oldest = f'_minimum_jaxlib_version = "{jax}"\n'
    return {
        **distribution("jax", jax, SITE, {"jax/version.py": oldest}),
        **distribution("jaxlib", jaxlib, SITE),
        **(extra or {}),
    }
