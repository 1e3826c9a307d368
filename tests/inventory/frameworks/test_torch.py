"""What a build of PyTorch opens, and for which GPUs it has code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import SITE, audit
from tests.inventory.making import distribution
from tests.real.torch_wheels import key_of, recorded
from tests.real.wheels import elf
from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.sandbox import Sandbox
from toolkit.inventory.frameworks.torch import read_build
from toolkit.inventory.knowledge.builds import FrameworkBuild, Installed

if TYPE_CHECKING:
    from pathlib import Path

WHEELS = recorded()


@pytest.mark.parametrize(("version", "verdict"), [("1.4.0", "gpu-ready"), ("2.5.1", "gpu-broken")])
def test_torch_until_1_4_keeps_its_cuda_code_in_libtorch(tmp_path: Path, version: str, verdict: str) -> None:
    package = {"torch/__init__.py": "", "torch/version.py": f"__version__ = '{version}'\ncuda = '10.1'\n"}
    libraries = {f"torch/lib/{name}": elf([], "", False, "") for name in ("libtorch.so", "libc10_cuda.so")}
    found = audit(tmp_path, distribution("torch", version, SITE, {**package, **libraries}))
    assert found.verdict.value == verdict


def build_of(site: Path, version: str, data: str, *libraries: str) -> FrameworkBuild:
    (site / "torch/lib").mkdir(parents=True, exist_ok=True)
    (site / "torch/version.py").write_text(version)
    (site / "torch/lib/libtorch_python.so").write_bytes(elf([], "", False, data))
    for name in libraries:
        (site / "torch/lib" / name).write_bytes(elf([], "", False, ""))
    rootfs = Rootfs(Sandbox(site), str(site), "sandbox")
    return read_build(Installed(rootfs, lambda _: None, "", Distribution("torch", "", "", ""), {}))


def test_every_released_wheel_names_the_architectures_of_its_code(tmp_path: Path) -> None:
    """PyPI's wheels since 1.13 for all Pythons; those without a list have no code for GPUs (aarch64 before 2.11)."""
    texts: dict[tuple[str, str, str], list[str]] = {}
    for name, one in WHEELS["wheels"].items():
        texts.setdefault((key_of(name), one["version"], one["data"]), []).append(name)
    for (key, version, data), names in texts.items():
        built = build_of(tmp_path, version, data, "libtorch_cuda.so")
        assert built.gpu is bool(data), names
        assert " ".join(built.architectures) == (WHEELS["code"][key] if data else ""), names


def test_the_wheels_of_all_releases_and_pythons_are_recorded() -> None:
    names = [name for name in WHEELS["wheels"] if "x86_64" in name]
    assert len({key_of(name) for name in names}) >= 30
    assert {name.split("-")[2] for name in names} >= {f"cp3{minor}" for minor in range(9, 15)}
    assert set(map(key_of, names)) <= WHEELS["code"].keys()


@pytest.mark.parametrize(
    ("data", "architectures"),
    [
        ("invalid\0sm_80", "sm_80"), ("std::string ipc_hsm_70 sm_75", "sm_70 sm_75"),
        ("sm_90a compute_90", "sm_90a compute_90"),
        ("sm_100f\0sm_70 sm_80\0sm_90", "sm_70 sm_80"), ("sm_70 is not compatible", ""), ("smith_70", ""),
    ],
)  # fmt: skip
def test_list_of_architectures_is_read_to_both_ends(tmp_path: Path, data: str, architectures: str) -> None:
    built = build_of(tmp_path, "__version__ = '2.9.1+cu128'\ncuda = '12.8'\n", data, "libtorch_cuda.so")
    assert " ".join(built.architectures) == architectures


@pytest.mark.parametrize("libraries", [(), ("libtorch_hip.so",)])
def test_build_for_amd_names_its_rocm(tmp_path: Path, libraries: tuple[str, ...]) -> None:
    version = "__version__ = '2.8.0+rocm6.4'\ncuda = None\nhip = '6.4.43482-0f2d60242'\n"
    built = build_of(tmp_path, version, "", *libraries)
    assert (built.gpu, built.rocm, built.cuda, built.complete) == (True, "6.4.43482", None, bool(libraries))
