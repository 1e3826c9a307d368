"""`ctk audit` on images made of real wheels of the index (reduced, see wheels.py): the right verdict and reason."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile

from tests.inventory.making import distribution, fill, overlay, python_files, squash, system, write_sif
from tests.real.wheels import Wheelhouse
from toolkit.inventory.formats.elf import read_dynamic
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.conftest import User

SITE = "usr/local/lib/python3.11/site-packages"
CTK = Path(sys.executable).with_name("ctk")


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    return Wheelhouse(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def image(tmp_path: Path, wheelhouse: Wheelhouse) -> Callable[..., Path]:
    """Install wheels into a root, one group after the other, and make a SIF of it."""

    def make(
        *groups: tuple[str, ...],
        dependencies: bool = False,
        python: str = "3.11",
        files: dict[str, Any] | None = None,
        **more: str,
    ) -> Path:
        root = fill(tmp_path / "root", {**python_files(python), **(files or {})})
        for group in groups:
            site = root / f"usr/local/lib/python{python}/site-packages"
            wheelhouse.install(site, *group, dependencies=dependencies, python=python, **more)
        return write_sif(tmp_path / "image.sif", [system(squash(root, tmp_path / "root.squashfs").read_bytes())])

    return make


def audit(image: Path, *options: str, without_path: bool = False) -> dict[str, Any]:
    """The JSON of `ctk audit`, with the exit status under "status"."""
    environment = {**os.environ, "PATH": "/nowhere"} if without_path else None
    done = subprocess.run(
        [CTK, "audit", image, "--json", *options], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode in (0, 1), done.stderr
    return {**json.loads(done.stdout), "status": done.returncode}


def messages(found: dict[str, Any]) -> dict[str, str]:
    return {one["code"]: one["message"] for one in found["findings"]}


def test_torch_with_its_nvidia_wheels_is_ready(image: Callable[..., Path]) -> None:
    sif = image(("torch==2.5.1",), dependencies=True)
    found = audit(sif, without_path=True)
    assert (found["verdict"], found["status"]) == ("gpu-ready", 0)
    torch = found["frameworks"][0]
    assert (torch["version"], torch["cuda"], torch["cudnn"]) == ("2.5.1+cu124", "12.4", "9")
    assert torch["architectures"] == ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
    assert {one["name"]: one["version"] for one in found["libraries"]}["cudnn"] == "9.1.0.70"
    assert audit(sif, "--gpu", "V100", "--driver", "535.104.05")["verdict"] == "gpu-ready"
    assert "gpu-not-covered" in messages(audit(sif, "--gpu", "B200"))
    assert "driver-too-old" in messages(audit(sif, "--driver", "470.57.02"))


def test_torch_without_its_dependencies(image: Callable[..., Path]) -> None:
    found = audit(image(("torch==2.5.1",)))
    assert (found["verdict"], found["status"]) == ("gpu-broken", 1)
    assert "libcudnn.so.9" in messages(found)["missing-cuda-library"]


def test_a_cpu_build_of_torch(image: Callable[..., Path]) -> None:
    """The index's wheels of torch 2.5.1 for aarch64 are CPU builds, without a local version that would say so."""
    sif = image(("torch==2.5.1",), machine="aarch64")
    found = audit(sif)
    assert (found["verdict"], found["status"]) == ("cpu-only", 1)
    assert audit(sif, "--allow", "cpu-only")["status"] == 0


def test_tensorflow_without_and_with_its_cuda_libraries(image: Callable[..., Path]) -> None:
    broken = audit(image(("tensorflow==2.15.1",)))
    assert broken["verdict"] == "gpu-broken"
    for soname in ("libcudart.so.12", "libcudnn.so.8", "libcusolver.so.11"):
        assert soname in messages(broken)["missing-cuda-library"]
    assert "tensorflow[and-cuda]==2.15.1" in str(broken["findings"][0]["fix"])


def test_tensorflow_with_cuda(image: Callable[..., Path]) -> None:
    found = audit(image(("tensorflow[and-cuda]==2.15.1",), dependencies=True))
    assert (found["verdict"], found["status"]) == ("gpu-ready", 0)
    expected = {"minimum-driver", "gpu-generations", "user-site-enabled", "wrong-architecture", "nccl-tcp-only"}
    assert messages(found).keys() <= expected


def test_tensorflow_2_18_with_the_cudnn_8_of_its_official_image(image: Callable[..., Path]) -> None:
    cuda = [f"nvidia-{name}-cu12==12.5.*" for name in ("cuda-runtime", "cublas")]
    cuda += ["nvidia-cufft-cu12==11.2.*", "nvidia-cusolver-cu12==11.6.*", "nvidia-cusparse-cu12==12.5.*"]
    found = audit(image(("tensorflow==2.18.1", *cuda, "nvidia-cudnn-cu12==8.9.7.29")))
    assert found["verdict"] == "gpu-broken"
    assert "libcudnn.so.9, but the image holds libcudnn.so.8" in messages(found)["wrong-cuda-library"]
    assert "missing-cuda-library" not in messages(found)


@pytest.mark.parametrize("last", ["tensorflow", "tensorflow-cpu"])
def test_tensorflow_beside_tensorflow_cpu(image: Callable[..., Path], last: str) -> None:
    """Both wheels bring the same `__init__.py`; other files tell which of them was written last."""
    first = {"tensorflow", "tensorflow-cpu"} - {last}
    found = audit(image((f"{first.pop()}==2.15.1",), (f"{last}==2.15.1",)))
    assert found["verdict"] == "gpu-broken"
    said = messages(found)["duplicate-framework"]
    assert "tensorflow 2.15.1 and tensorflow-cpu 2.15.1" in said
    assert f"An import loads {last} 2.15.1 (by the hash of its files)" in said
    assert found["frameworks"][0]["gpu_build"] is (last == "tensorflow")


def test_the_sorry_container(image: Callable[..., Path]) -> None:
    """tensorflow-gpu 2.1.0 over CUDA 10.1, and the TensorFlow 2.4.1 that a message told somebody to install."""
    cuda = "usr/local/cuda-10.1/lib64"
    files = {f"{cuda}/lib{name}.so.10": b"x" for name in ("cublas", "cufft", "cusolver", "cusparse")}
    files |= {f"{cuda}/libcudart.so.10.1": b"x", f"{cuda}/libcudnn.so.7": b"x", "usr/local/cuda": "-> cuda-10.1"}
    files |= {".singularity.d/env/10-docker2singularity.sh": 'export LD_LIBRARY_PATH="/usr/local/cuda/lib64"\n'}
    good = audit(image(("tensorflow-gpu==2.1.0",), python="3.7", files=files))
    assert good["verdict"] == "gpu-ready"
    assert good["frameworks"][0]["cuda"] == "10.1"


def test_the_sorry_container_after_pip_install_tensorflow(image: Callable[..., Path]) -> None:
    files = {"usr/local/cuda-10.1/lib64/libcudart.so.10.1": b"x", "usr/local/cuda-10.1/lib64/libcudnn.so.7": b"x"}
    files |= {".singularity.d/env/10-docker2singularity.sh": 'export LD_LIBRARY_PATH="/usr/local/cuda-10.1/lib64"\n'}
    found = audit(image(("tensorflow-gpu==2.1.0",), ("tensorflow==2.4.1",), python="3.7", files=files))
    assert found["verdict"] == "gpu-broken"
    said = messages(found)
    assert "An import loads tensorflow 2.4.1 (by the hash of its files)" in said["duplicate-framework"]
    assert "libcudart.so.11.0, but the image holds libcudart.so.10.1" in said["wrong-cuda-library"]


def test_keras_3_over_tensorflow_2_15(image: Callable[..., Path]) -> None:
    found = audit(image(("tensorflow[and-cuda]==2.15.1",), ("keras==3.4.1",), dependencies=True))
    assert found["verdict"] == "gpu-broken"
    assert "incompatible-versions" in messages(found)


def test_jax_without_and_with_its_plugin(image: Callable[..., Path]) -> None:
    found = audit(image(("jax==0.6.2", "jaxlib==0.6.2")))
    assert found["verdict"] == "cpu-only"
    assert "cpu-only-build" in messages(found)


def test_jax_with_its_plugin(image: Callable[..., Path]) -> None:
    found = audit(image(("jax[cuda12]==0.6.2",), dependencies=True))
    assert found["verdict"] == "gpu-ready"
    assert found["frameworks"][0]["cuda"] == "12"
    assert found["frameworks"][0]["cudnn"] == "9"


def test_jax_with_its_plugin_and_no_libraries(image: Callable[..., Path]) -> None:
    wheels = ("jax==0.6.2", "jaxlib==0.6.2", "jax-cuda12-plugin==0.6.2", "jax-cuda12-pjrt==0.6.2")
    found = audit(image(wheels))
    assert found["verdict"] == "gpu-broken"
    assert "libcudnn.so.9" in messages(found)["missing-cuda-library"]


def test_cupy_without_cuda_and_two_of_it(image: Callable[..., Path]) -> None:
    found = audit(image(("cupy-cuda11x==13.6.0",), ("cupy-cuda12x==13.6.0",)))
    assert found["verdict"] == "gpu-broken"
    said = messages(found)
    assert "cupy-cuda11x 13.6.0 and cupy-cuda12x 13.6.0" in said["duplicate-framework"]
    assert "libnvrtc.so.12" in said["missing-cuda-library"]


def test_cupy_without_cuda(image: Callable[..., Path]) -> None:
    found = audit(image(("cupy-cuda12x==13.6.0",)))
    assert found["verdict"] == "gpu-broken"
    assert set(messages(found)) >= {"missing-cuda-library"}
    assert "duplicate-framework" not in messages(found)


def test_onnxruntime_beside_its_gpu_variant(image: Callable[..., Path]) -> None:
    found = audit(image(("onnxruntime-gpu==1.22.0",), ("onnxruntime==1.22.0",)))
    assert found["verdict"] == "gpu-broken"
    assert "duplicate-framework" in messages(found)


def test_a_conda_like_layout(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    """conda's torch: an egg-info without RECORD, CUDA's libraries in /opt/conda/lib, another Python beside it."""
    conda = tmp_path / "root/opt/conda"
    fill(tmp_path / "root", {**python_files("3.9", "usr"), **python_files("3.11", "opt/conda")})
    site = conda / "lib/python3.11/site-packages"
    wheelhouse.install(site, "torch==2.5.1", dependencies=True)
    for library in sorted(site.glob("nvidia/*/lib/*.so*")):
        library.rename(conda / "lib" / library.name)
    for information in sorted(site.glob("*.dist-info")):
        if information.name.startswith(("nvidia_", "torch-")):
            for file in sorted(information.iterdir()):
                file.unlink()
            information.rmdir()
    fill(conda, {
        "lib/python3.11/site-packages/torch-2.5.1-py3.11.egg-info/PKG-INFO": "Name: torch\nVersion: 2.5.1\n",
        "conda-meta/pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0.json": "{}",
        "conda-meta/numpy-1.26.4-py311h64a7726_0.json": "{}",
    })  # fmt: skip
    fill(tmp_path / "root", distribution("numpy", "2.0.0", "opt/conda/lib/python3.11/site-packages"))
    fill(tmp_path / "root", {".singularity.d/env/10-docker2singularity.sh": 'export PATH="/opt/conda/bin:/usr/bin"\n'})
    found = audit(tmp_path / "root")
    assert found["verdict"] == "gpu-ready"
    assert found["frameworks"][0]["interpreter"] == "/opt/conda/bin/python3.11"
    assert "numpy (conda 1.26.4, now 2.0.0)" in messages(found)["mixed-pip-conda"]


def test_a_layer_that_replaced_torch(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    """The base's torch lies under whiteouts of an overlay partition and must not be seen."""
    base = fill(tmp_path / "base", python_files())
    wheelhouse.install(base / SITE, "torch==2.5.1", dependencies=True)
    upper = tmp_path / "upper"
    (upper / SITE).mkdir(parents=True)
    wheelhouse.install(upper / SITE, "torch==2.11.0")
    whiteouts = [one.name for one in (base / SITE).iterdir() if one.name.startswith(("nvidia", "torch-2.5.1"))]
    options = [word for name in whiteouts for word in ("-p", f"{SITE}/{name} c 644 0 0 0 0")]
    sif = write_sif(
        tmp_path / "layered.sif",
        [
            system(squash(base, tmp_path / "base.squashfs").read_bytes()),
            overlay(squash(upper, tmp_path / "upper.squashfs", *options).read_bytes()),
        ],
    )
    found = audit(sif)
    assert found["image"]["form"] == "layered SIF"
    assert found["verdict"] == "gpu-broken"
    assert [one["version"] for one in found["frameworks"]] == ["2.11.0+cu130"]
    assert "libcudart.so.13" in messages(found)["missing-cuda-library"]


def test_a_real_sif_and_its_bill_of_materials(tmp_path: Path, base_image: Path) -> None:
    bill = tmp_path / "bill.json"
    found = audit(base_image, "--packages", "--sbom", str(bill), "--allow", "no-framework", without_path=True)
    assert (found["verdict"], found["status"]) == ("no-framework", 0)
    assert found["image"]["form"] == "flat SIF"
    assert found["image"]["architecture"] == platform.machine()
    urls = {component["purl"] for component in json.loads(bill.read_text())["components"]}
    assert any(url.startswith("pkg:deb/debian/libc6@") for url in urls)
    assert any(url.startswith("pkg:pypi/pip@") for url in urls)
    assert len(found["apt"]) > 50


def test_elf_files_are_read_as_pyelftools_reads_them() -> None:
    """Over the libraries of this machine's Python and its own: the two readers agree on every one."""
    directories = [Path(sys.prefix), Path("/usr/lib")]
    libraries = sorted(
        {path.resolve() for directory in directories for path in directory.rglob("*.so*") if path.is_file()}
    )[:400]
    compared = 0
    with open_image(Path("/")) as rootfs:
        for library in libraries:
            if library.read_bytes()[:6] != b"\x7fELF\x02\x01":
                continue
            with library.open("rb") as file:
                section = ELFFile(file).get_section_by_name(".dynamic")
                needed = [tag.needed for tag in section.iter_tags("DT_NEEDED")] if section else None
            found = read_dynamic(rootfs, str(library))
            assert (list(found.needed) if found else None) == needed, library
            compared += 1
    assert compared > 20


def test_layers_are_read_as_the_real_runtime_mounts_them(tmp_path: Path, tiny_image: Path, me: User) -> None:
    """The last partition lies uppermost, a whiteout hides; and each name that a mark hides is reported as disputed."""
    image = tmp_path / "layered.sif"
    shutil.copy(tiny_image, image)
    first = fill(tmp_path / "first", {"etc/which": "first", "etc/gone": "", "marked/old": "", "opt/first": ""})
    second = fill(tmp_path / "second", {"etc/which": "second", "marked/new": "", "marked/.wh.old": ""})
    for directory, pseudo in ((first, ()), (second, ("-p", "etc/gone c 644 0 0 0 0"))):
        squashed = squash(directory, tmp_path / "layer.squashfs", *pseudo)
        partition = ["--datatype", "4", "--partfs", "1", "--parttype", "4", "--partarch", "2", "--groupid", "1"]
        subprocess.run(["apptainer", "sif", "add", *partition, image, squashed], check=True)
    command = "cat /etc/which; ls /etc /opt /marked"
    seen = me.run(me.program, "run", image, "--", "sh", "-c", command, cwd=tmp_path).stdout
    with open_image(image) as rootfs:
        assert seen.startswith("second")
        assert rootfs.read("/etc/which") == b"second"
        assert "gone" not in seen
        assert not rootfs.exists("/etc/gone")
        assert rootfs.exists("/opt/first")
        assert rootfs.names("/marked") == ("new",)
        assert rootfs.disputed == {"/marked/old"}
