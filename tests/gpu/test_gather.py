"""Frameworks where no `pip install` into the default Python put them: found, judged, and with how to call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.wheel_sets import reduced
from tests.inventory.contents.test_environments import FINDER, MAPPING, venv
from tests.inventory.making import distribution, fill, python_files
from toolkit.gpu.audit import Audit, judge_image
from toolkit.gpu.facts import TargetMachine
from toolkit.gpu.gather import gather_image_facts
from toolkit.inventory.formats.images import open_image
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/local/lib/python3.11/site-packages"
TORCH = "torch==2.5.1 on 3.11 with dependencies"


def wheels(directory: str, key: str = TORCH) -> dict[str, str | bytes]:
    sets, found = reduced()
    return {f"{directory}/{path}": content for name in sets[key] for path, content in found[name].files().items()}


def audit(root: Path) -> Audit:
    with open_image(root) as rootfs:
        return judge_image(gather_image_facts(rootfs), TargetMachine())


@pytest.mark.parametrize("prefix", ["workspace/proj/.venv", "opt/ml/env"])
def test_torch_in_a_venv_off_path(tmp_path: Path, prefix: str) -> None:
    fill(tmp_path, {**python_files(), **venv(prefix), **wheels(f"{prefix}/lib/python3.11/site-packages")})
    found = audit(tmp_path)
    assert found.verdict is Verdict.GPU_READY
    assert [framework.facts.interpreter for framework in found.frameworks] == [f"/{prefix}/bin/python"]
    finding = next(finding for finding in found.findings if finding.code == "framework-not-default")
    assert finding.fix is not None
    assert finding.fix.startswith(f"ctk run {tmp_path} /{prefix}/bin/python SCRIPT")


def test_torch_in_a_conda_environment_of_an_image_without_any_other_python(tmp_path: Path) -> None:
    prefix = "miniconda3/envs/work"
    fill(tmp_path, {**python_files("3.11", prefix), f"{prefix}/conda-meta/history": ""})
    fill(tmp_path, wheels(f"{prefix}/lib/python3.11/site-packages"))
    found = audit(tmp_path)
    assert found.verdict is Verdict.GPU_READY
    message = next(finding.message for finding in found.findings if finding.code == "framework-not-default")
    assert "is installed for /miniconda3/envs/work/bin/python3.11, but `python` in this image is missing" in message
    assert found.frameworks[0].facts.command("x.sif") == ["ctk", "run", "x.sif", "/miniconda3/envs/work/bin/python3.11"]


CPU_TORCH = {"torch/version.py": "__version__ = '2.5.1+cpu'\ncuda = None\n", "torch/__init__.py": ""}


@pytest.mark.parametrize(
    ("files", "command", "verdict"),
    [
        ({}, (), Verdict.CPU_ONLY),
        ({}, ("python", "train.py"), Verdict.CPU_ONLY),
        ({}, ("/opt/venv/bin/python", "train.py"), Verdict.GPU_READY),
        ({".singularity.d/runscript": 'exec /opt/venv/bin/python "$@"\n'}, (), Verdict.GPU_READY),
        # The command of the job is what runs, whatever the runscript says.
        ({".singularity.d/runscript": 'exec /opt/venv/bin/python "$@"\n'}, ("python3", "train.py"), Verdict.CPU_ONLY),
        ({".singularity.d/env/90-environment.sh": "export PATH=/opt/venv/bin:$PATH\n"}, (), Verdict.GPU_READY),
        ({".singularity.d/env/90-environment.sh": "conda activate gpu\n"}, (), Verdict.GPU_READY),
    ],
)
def test_cpu_build_of_the_default_python_beside_a_gpu_build(
    tmp_path: Path, files: dict[str, str | bytes], command: tuple[str, ...], verdict: Verdict
) -> None:
    fill(tmp_path, {**python_files(), **distribution("torch", "2.5.1+cpu", SITE, CPU_TORCH)})
    fill(tmp_path, {**venv("opt/venv"), **wheels("opt/venv/lib/python3.11/site-packages"), **files})
    with open_image(tmp_path) as rootfs:
        found = judge_image(gather_image_facts(rootfs, command), TargetMachine())
    assert found.verdict is verdict
    assert {framework.verdict for framework in found.frameworks} == {Verdict.CPU_ONLY, Verdict.GPU_READY}


@pytest.mark.parametrize(("mode", "verdict"), [(0o755, Verdict.GPU_READY), (0o700, Verdict.NO_FRAMEWORK)])
def test_torch_in_the_home_of_root(tmp_path: Path, mode: int, verdict: Verdict) -> None:
    prefix = "root/miniconda3"
    fill(tmp_path, {**python_files("3.11", prefix), **wheels(f"{prefix}/lib/python3.11/site-packages")})
    fill(tmp_path, {".singularity.d/env/90-environment.sh": f"export PATH=/{prefix}/bin:/usr/bin\n"})
    (tmp_path / "root").chmod(mode)
    found = audit(tmp_path)
    assert found.verdict is verdict
    told = [finding.message for finding in found.findings if finding.code == "no-framework"]
    assert ["PATH contains /root/miniconda3/bin" in line for line in told] == [True] * (mode == 0o700)


@pytest.mark.parametrize(
    "leads",
    [
        {f"{SITE}/__editable__.torch-2.5.1.pth": f"import {FINDER}; {FINDER}.install()\n",
         f"{SITE}/{FINDER}.py": MAPPING},
        {f"{SITE}/__editable__.torch-2.5.1.pth": "/work/pytorch\n"},
        {f"{SITE}/easy-install.pth": "/work/pytorch\n", f"{SITE}/torch.egg-link": "/work/pytorch\n.\n",
         "work/pytorch/torch.egg-info/PKG-INFO": "Name: torch\nVersion: 2.5.1\n"},
        {".singularity.d/env/90-environment.sh": "export PYTHONPATH=/work/pytorch\n"},
    ],
    ids=["finder", "path", "egg-link", "without metadata"],
)  # fmt: skip
def test_torch_built_from_its_sources(tmp_path: Path, leads: dict[str, str | bytes]) -> None:
    """Its files lie in the source tree, and NVIDIA's wheels in the site directory."""
    own = {path: text for path, text in wheels("").items() if path.startswith("/torch/")}
    names = ("cublas", "cublasLt", "cudart", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvJitLink")
    own["/torch/__init__.py"] = "".join(f'"{name.lower()}": "lib{name}.so.*[0-9]",\n' for name in names)
    bare = not any("__editable__" in path for path in leads)
    installed = {path: text for path, text in wheels(SITE).items() if not path.startswith(f"{SITE}/torch/")}
    kept = {path: text for path, text in installed.items() if not (bare and path.startswith(f"{SITE}/torch-"))}
    fill(tmp_path, {**python_files(), **kept, **leads, **{f"work/pytorch{path}": text for path, text in own.items()}})
    found = audit(tmp_path)
    assert found.verdict is Verdict.GPU_READY, found.findings
    facts = found.frameworks[0].facts
    assert (facts.version, facts.build.cuda) == ("2.5.1+cu124", "12.4")


@pytest.mark.parametrize(
    ("script", "verdict", "codes"),
    [
        ("export LD_LIBRARY_PATH=/opt/cuda/lib64\n", Verdict.GPU_READY, set()),
        ("if [ -d /opt/cuda/lib64 ]; then\n  export LD_LIBRARY_PATH=/opt/cuda/lib64\nfi\n", Verdict.GPU_READY, set()),
        ('case "$(uname -m)" in x86_64) LD_LIBRARY_PATH=/opt/cuda/lib64;; *) LD_LIBRARY_PATH=/arm;; esac\n',
         Verdict.GPU_READY, {"environment-unknown"}),
        ("for d in /opt/cuda/lib64; do LD_LIBRARY_PATH=$d:$LD_LIBRARY_PATH; done\n", Verdict.GPU_READY, set()),
        (". /opt/cuda/setup.sh\n", Verdict.GPU_READY, set()),
        ("if nvcc --version; then LD_LIBRARY_PATH=/opt/cuda/lib64; else LD_LIBRARY_PATH=/x; fi\n", Verdict.GPU_READY,
         {"environment-unknown"}),
        ("export LD_LIBRARY_PATH=$(cat /etc/cuda-path)\n", Verdict.GPU_READY,
         {"environment-unknown", "missing-cuda-library"}),
        (". /scratch/site/cuda.sh\n", Verdict.GPU_READY, {"environment-unknown", "missing-cuda-library"}),
        ("export LD_LIBRARY_PATH=/nowhere\n", Verdict.GPU_BROKEN, {"missing-cuda-library"}),
        ("if nvcc --version; then LD_LIBRARY_PATH=/nowhere; fi\n", Verdict.GPU_BROKEN,
         {"environment-unknown", "missing-cuda-library"}),
    ],
)  # fmt: skip
def test_libraries_that_an_environment_script_leads_to(
    tmp_path: Path, script: str, verdict: Verdict, codes: set[str]
) -> None:
    sonames = ("cudart.so.12", "cublas.so.12", "cufft.so.11", "cusolver.so.11", "cusparse.so.12", "cudnn.so.8")
    fill(tmp_path, {f"opt/cuda/lib64/lib{name}": "" for name in sonames})
    fill(tmp_path, {"opt/cuda/setup.sh": "export LD_LIBRARY_PATH=/opt/cuda/lib64\n"})
    fill(tmp_path, {**python_files(), ".singularity.d/env/90-environment.sh": script})
    tensorflow = "tensorflow[and-cuda]==2.15.1 on 3.11 with dependencies"
    fill(tmp_path, {path: text for path, text in wheels(SITE, tensorflow).items() if f"{SITE}/nvidia" not in path})
    found = audit(tmp_path)
    about = {"environment-unknown", "missing-cuda-library", "wrong-cuda-library", "cuda-library-off-path"}
    assert (found.verdict, {finding.code for finding in found.findings} & about) == (verdict, codes), found.findings


def test_the_version_of_a_compat_library_is_that_of_its_file(tmp_path: Path) -> None:
    compat = {
        "usr/local/cuda/compat/libcuda.so.550.54.15": "",
        "usr/local/cuda/compat/libcuda.so.1": "-> libcuda.so.550.54.15",
    }
    script = {".singularity.d/env/90-environment.sh": "export LD_LIBRARY_PATH=/usr/local/cuda/compat\n"}
    fill(tmp_path, {**python_files(), **compat, **script, **wheels(SITE)})
    with open_image(tmp_path) as rootfs:
        facts = gather_image_facts(rootfs)
    old = judge_image(facts, TargetMachine(driver="470.57.02", gpu="A100", capability=(8, 0)))
    assert old.verdict is Verdict.GPU_READY
    assert (
        judge_image(facts, TargetMachine(driver="570.86.10", gpu="A100", capability=(8, 0))).verdict
        is Verdict.GPU_BROKEN
    )
    assert (
        judge_image(facts, TargetMachine(driver="525.60.13", gpu="RTX4090", capability=(8, 9))).verdict
        is Verdict.GPU_BROKEN
    )
