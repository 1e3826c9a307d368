"""The rules of the audit, each on plain values."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from toolkit.gpu import rules
from toolkit.gpu.audit import judge_image
from toolkit.gpu.compatibility import compatibility, parse_driver, parse_gpu
from toolkit.gpu.facts import FrameworkFacts, GpuLibrary, ImageFacts, Loaded, TargetMachine
from toolkit.gpu.rules.generations import has_code
from toolkit.gpu.rules.image import wheel_major
from toolkit.inventory.contents.model import Distribution, Interpreter, Inventory, SystemPackage
from toolkit.inventory.knowledge.builds import FrameworkBuild, Want
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from toolkit.gpu.audit import Audit

SITE = "/usr/lib/python3/dist-packages"
PYTHON = Interpreter("/usr/bin/python3.11", "3.11.2", "/usr", "system", (SITE,), default=True)
QUIET = {"PYTHONNOUSERSITE": "1"}


def dist(name: str, version: str = "1.0", **more: str) -> Distribution:
    return Distribution(name, version, SITE, f"{SITE}/{name}-{version}.dist-info", **more)


def image(*distributions: Distribution, environment: dict[str, str] | None = None, **more: object) -> Inventory:
    variables = tuple((environment or QUIET).items())
    plain = Inventory(
        "x.sif", "flat SIF", "x86_64", "2.36", "debian 12", variables, (PYTHON,), distributions, (), ()
    )  # fmt: skip
    return replace(plain, **more)  # type: ignore[arg-type]


def framework(
    name: str,
    version: str,
    build: FrameworkBuild,
    *others: Distribution,
    lacking: tuple[Loaded, ...] = (),
    **more: object,
) -> FrameworkFacts:
    own = dist(name, version)
    known = knowledge().framework_of(name)
    assert known is not None
    plain = FrameworkFacts(known, PYTHON.path, own, (own,), build, lacking, {one.name: one for one in others})
    return replace(plain, **more)  # type: ignore[arg-type]


def audit(*frameworks: FrameworkFacts, target: TargetMachine | None = None, **more: object) -> Audit:
    inventory = more.pop("inventory", None) or image()
    return judge_image(ImageFacts(inventory, frameworks, more.pop("libraries", ()), **more), target or TargetMachine())  # type: ignore[arg-type]


def codes(found: Audit, severity: str | None = None) -> set[str]:
    return {one.code for one in found.findings if severity in (None, one.severity.value)}


GPU = FrameworkBuild("", gpu=True)
TORCH = FrameworkBuild("2.5.1+cu124", gpu=True, cuda="12.4", cudnn="9", architectures=("sm_70", "sm_80", "sm_90"))


def test_verdicts() -> None:
    ready = framework("torch", "2.5.1", TORCH)
    cpu = framework("onnxruntime", "1.20.1", FrameworkBuild("1.20.1", gpu=False))
    lost = Loaded(Want("libcudart.so.12", "x"), None)
    broken = framework("tensorflow", "2.15.1", replace(GPU, cuda="12.2"), lacking=(lost,))
    assert audit(ready).verdict is Verdict.GPU_READY
    assert audit(cpu).verdict is Verdict.CPU_ONLY
    assert audit(ready, cpu).verdict is Verdict.GPU_READY
    assert audit(ready, broken).verdict is Verdict.GPU_BROKEN
    assert audit().verdict is Verdict.NO_FRAMEWORK
    assert [one.verdict for one in audit(ready, broken, cpu).frameworks] == [
        Verdict.GPU_READY, Verdict.GPU_BROKEN, Verdict.CPU_ONLY,
    ]  # fmt: skip


def test_findings_come_gravest_first() -> None:
    broken = framework("torch", "2.5.1", TORCH, lacking=(Loaded(Want("libcudnn.so.9", "x"), None),))
    found = audit(broken, inventory=image(environment={"A": "b"}))
    severities = [one.severity.value for one in found.findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert {"error", "info"} <= set(severities)


def test_a_wrong_library_is_told_from_an_absent_and_a_hidden_one() -> None:
    lacking = (
        Loaded(Want("libcudart.so.11.0", "x"), None, others=("/usr/local/cuda/lib64/libcudart.so.10.1",)),
        Loaded(Want("libcublas.so.11", "x"), None),
        Loaded(Want("libcufft.so.10", "x"), None, unreachable=("/usr/local/cuda/lib64/libcufft.so.10",)),
        Loaded(Want("libnccl.so.2", "x", required=False), None),
        Loaded(Want("libcurand.so.10", "x"), "/usr/lib/libcurand.so.10"),
    )
    found = audit(framework("tensorflow", "2.4.1", replace(GPU, cuda="11.0"), lacking=lacking))
    by_code = {one.code: one.message for one in found.findings}
    assert "libcudart.so.11.0, but the image holds libcudart.so.10.1" in by_code["wrong-cuda-library"]
    assert by_code["missing-cuda-library"].endswith(": libcublas.so.11.")
    assert "/usr/local/cuda/lib64, which the loader does not search" in by_code["cuda-library-off-path"]
    assert "libnccl" not in "".join(by_code.values())
    assert "libcurand" not in "".join(by_code.values())


@pytest.mark.parametrize(
    ("there", "requires", "old"),
    [
        ("9.1.0.70", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', True),
        ("9.3.0.75", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', False),
        ("9.10.2", 'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"', False),
        ("9.2", 'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"', True),
        ("8.9.7", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', False),  # `wrong-cuda-library` says that
        ("9", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', False),
        ("9.1.0.70", "numpy<2.1", False),
    ],
)
def test_tensorflow_and_torch_refuse_a_cudnn_older_than_their_own(there: str, requires: str, old: bool) -> None:
    path = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
    loaded = (Loaded(Want("libcudnn.so.9", "x"), path),)
    own = replace(dist("tensorflow", "2.18.1"), requires=("numpy", requires))
    library = GpuLibrary("cudnn", there, path, True)
    found = audit(framework("tensorflow", "2.18.1", GPU, lacking=loaded, distribution=own), libraries=(library,))
    assert codes(found, "error") == ({"cudnn-too-old"} if old else set())
    torch = framework("torch", "2.6.0", GPU, lacking=loaded, distribution=own)
    assert codes(audit(torch, libraries=(library,)), "error") == ({"cudnn-too-old"} if old else set())


def test_onnxruntime_can_be_told_where_its_libraries_are() -> None:
    hidden = Loaded(Want("libcudnn.so.9", "x"), None, unreachable=(f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9",))
    found = audit(framework("onnxruntime-gpu", "1.22.0", GPU, lacking=(hidden,)))
    assert found.verdict is Verdict.GPU_READY
    assert "preload_dlls" in str(found.findings[0].fix)
    before = audit(framework("onnxruntime-gpu", "1.20.2", GPU, lacking=(hidden,)))
    assert before.verdict is Verdict.GPU_BROKEN
    assert "LD_LIBRARY_PATH" in str(before.findings[0].fix)


def test_two_variants_break_the_promise_even_where_the_cpu_one_wins() -> None:
    cpu = framework("tensorflow-cpu", "2.15.1", FrameworkBuild("", gpu=False))
    both = (dist("tensorflow", "2.15.1"), dist("tensorflow-cpu", "2.15.1"))
    found = audit(replace(cpu, variants=both, told_by_hash=True))
    assert found.verdict is Verdict.GPU_BROKEN
    message = next(one.message for one in found.findings if one.code == "duplicate-framework")
    assert "An import loads tensorflow-cpu 2.15.1 (by the hash of its files)" in message


def test_the_same_distribution_in_two_directories_is_no_second_framework() -> None:
    one = framework("torch", "2.5.1", TORCH)
    assert audit(replace(one, variants=(one.distribution, one.distribution))).verdict is Verdict.GPU_READY


@pytest.mark.parametrize(
    ("name", "version", "companion", "companion_version", "code", "verdict"),
    [
        ("torch", "2.5.1", "torchvision", "0.19.1", "companion-out-of-step", "gpu-broken"),
        ("torch", "2.5.1", "torchvision", "0.20.1", None, "gpu-ready"),
        ("torch", "1.13.1", "torchaudio", "2.11.0", "companion-out-of-step", "gpu-broken"),
        ("tensorflow", "2.15.1", "keras", "3.4.1", "incompatible-versions", "gpu-broken"),
        ("tensorflow", "2.15.1", "keras", "2.14.0", "companion-out-of-step", "gpu-ready"),
        ("tensorflow-gpu", "2.1.0", "keras", "2.4.3", "incompatible-versions", "gpu-broken"),
        ("tensorflow-gpu", "2.1.0", "keras", "2.3.1", None, "gpu-ready"),
        ("tensorflow", "2.14.0", "numpy", "2.2.6", "incompatible-versions", "gpu-broken"),
        ("tensorflow", "2.18.1", "numpy", "2.0.2", None, "gpu-ready"),
        ("onnxruntime-gpu", "1.18.0", "numpy", "2.2.6", "incompatible-versions", "gpu-broken"),
        ("onnxruntime-gpu", "1.19.0", "numpy", "2.2.6", None, "gpu-ready"),
        ("tensorflow", "2.15.0+nv24.3", "keras", "2.15.0", None, "gpu-ready"),
    ],
)
def test_companions(
    name: str, version: str, companion: str, companion_version: str, code: str | None, verdict: str
) -> None:
    found = audit(framework(name, version, GPU, dist(companion, companion_version)))
    assert codes(found) & {"companion-out-of-step", "incompatible-versions"} == ({code} if code else set())
    assert found.verdict.value == verdict


def test_a_jax_plugin_of_another_version_is_ignored_by_jax() -> None:
    parts = (dist("jaxlib", "0.6.2"), dist("jax-cuda12-plugin", "0.6.0"), dist("jax-cuda12-pjrt", "0.6.2"))
    found = audit(framework("jax", "0.6.2", GPU, *parts))
    assert codes(found, "error") == {"plugin-out-of-step"}
    same = (dist("jaxlib", "0.6.2"), dist("jax-cuda12-plugin", "0.6.2"), dist("jax-cuda12-pjrt", "0.6.2"))
    assert audit(framework("jax", "0.6.2", GPU, *same)).verdict is Verdict.GPU_READY


@pytest.mark.parametrize(
    ("cuda", "driver", "code"),
    [
        ("12.4", None, "minimum-driver"), ("12.4", "525.60.13", "driver-before-toolkit"),
        ("12.4", "525.60.12", "driver-too-old"), ("12.4", "550.54.14", None),
        ("13.0", "575.57.08", "driver-too-old"), ("13.0", "580.65.06", None),
        ("11.6", "470.57.02", "driver-before-toolkit"),
        ("11.6", "450.51.05", "driver-too-old"), ("11.0", "450.51.05", None), ("10.1", "418.39", None),
        ("10.1", "410.48", "driver-too-old"), ("12", "535.104.05", None), ("99.0", "535.104.05", None),
    ],
)  # fmt: skip
def test_drivers(cuda: str, driver: str | None, code: str | None) -> None:
    found = audit(framework("torch", "2.5.1", replace(GPU, cuda=cuda)), target=TargetMachine(driver=driver))
    assert codes(found) & {"minimum-driver", "driver-too-old", "driver-before-toolkit"} == ({code} if code else set())


@pytest.mark.parametrize(
    ("architectures", "capability", "expected"),
    [
        (("sm_70",), (7, 0), True), (("sm_70",), (7, 5), True), (("sm_75",), (7, 0), False),
        (("sm_80",), (9, 0), False), (("what",), (7, 0), False),
        (("compute_80",), (9, 0), True), (("compute_80",), (7, 5), False), (("sm_90a",), (9, 0), True),
        (("sm_90a",), (9, 1), False), (("sm_100",), (10, 3), True), (("sm_100",), (12, 0), False),
    ],
)  # fmt: skip
def test_which_code_runs_on_which_gpu(
    architectures: tuple[str, ...], capability: tuple[int, int], expected: bool
) -> None:
    assert has_code(architectures, capability) is expected


def test_a_gpu_without_code_breaks_the_verdict() -> None:
    volta = TargetMachine(gpu="V100", capability=(7, 0))
    assert audit(framework("torch", "2.5.1", TORCH), target=volta).verdict is Verdict.GPU_READY
    blackwell = audit(framework("torch", "2.5.1", TORCH), target=TargetMachine(gpu="B200", capability=(10, 0)))
    assert codes(blackwell, "error") == {"gpu-not-covered"}
    thirteen = audit(framework("torch", "2.11.0", replace(GPU, cuda="13.0")), target=volta)
    assert "CUDA 13 dropped" in thirteen.findings[0].message


def test_a_new_cudnn_ends_volta_though_the_build_has_code_for_it() -> None:
    path = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
    one = framework("torch", "2.5.1", TORCH, lacking=(Loaded(Want("libcudnn.so.9", "x"), path),))
    target = TargetMachine(gpu="V100", capability=(7, 0))
    for version, verdict in (("9.10.2.21", Verdict.GPU_READY), ("9.28.0.42", Verdict.GPU_BROKEN)):
        assert audit(one, target=target, libraries=(GpuLibrary("cudnn", version, path, True),)).verdict is verdict


@pytest.mark.parametrize(
    ("path", "way", "code", "verdict"),
    [
        ("/usr/local/cuda/lib64/stubs/libcuda.so.1", "LD_LIBRARY_PATH", "stub-libcuda-first", Verdict.GPU_BROKEN),
        ("/usr/local/cuda/lib64/stubs/libcuda.so.1", "ld.so.cache", "stub-libcuda", Verdict.GPU_READY),
        ("/usr/local/cuda/compat/libcuda.so.1", "LD_LIBRARY_PATH", "compat-libcuda-first", Verdict.GPU_READY),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "ld.so.cache", "own-libcuda", Verdict.GPU_READY),
    ],
)
def test_a_libcuda_of_the_images_own(path: str, way: str, code: str, verdict: Verdict) -> None:
    found = audit(framework("torch", "2.5.1", TORCH), drivers=((path, way),))
    assert code in codes(found)
    assert found.verdict is verdict


def test_leftover_cuda_wheels() -> None:
    new = (dist("nvidia-cublas", "13.1.0"), dist("nvidia-cudnn-cu13", "9.19"))
    old = (dist("nvidia-cublas-cu12", "12.4.5.8"), dist("nvidia-cudnn-cu12", "9.1"))
    torch = framework("torch", "2.11.0", replace(GPU, cuda="13.0"))
    assert "mixed-cuda-wheels" not in codes(audit(torch, inventory=image(*new)))
    found = audit(torch, inventory=image(*new, *old))
    message = next(one.message for one in found.findings if one.code == "mixed-cuda-wheels")
    assert "nvidia-cublas-cu12, nvidia-cudnn-cu12" in message
    jax = framework("jax", "0.6.2", replace(GPU, cuda="12"))
    assert "mixed-cuda-wheels" not in codes(audit(torch, jax, inventory=image(*new, *old)))


def test_the_major_of_a_wheel() -> None:
    assert wheel_major(dist("nvidia-cublas-cu12", "12.4")) == "12"
    assert wheel_major(dist("nvidia-cublas", "13.1")) == "13"
    assert wheel_major(dist("nvidia-cufft", "12.0")) is None
    assert wheel_major(dist("nvidia-ml-py", "13.6")) is None


def test_the_image_as_a_whole() -> None:
    opencv = (dist("opencv-python", "4.9"), dist("opencv-contrib-python", "4.10"))
    conda = replace(PYTHON, prefix="/opt/conda", origin="conda")
    mixed = image(
        *opencv, dist("numpy", "2.0", installer="pip"), environment={"NVIDIA_REQUIRE_CUDA": "cuda>=12.6 brand=tesla"},
        conda_packages=(SystemPackage("numpy", "1.26", "h1", "/opt/conda"),), interpreters=(conda,),
    )  # fmt: skip
    elsewhere = TargetMachine(architecture="aarch64", glibc="2.39")
    found = audit(inventory=mixed, target=elsewhere, sif_architecture="arm64", disputed=("/opt/x",))
    assert codes(found) == {
        "duplicate-module", "mixed-pip-conda", "user-site-enabled", "wrong-architecture", "architecture-contradiction",
        "glibc-older-than-host", "base-requires-cuda", "no-framework", "layer-marks-ignored",
    }  # fmt: skip
    assert codes(audit(framework("torch", "2.5.1", TORCH))) == {"minimum-driver", "gpu-generations"}


def test_a_shadowed_copy_and_a_framework_elsewhere() -> None:
    two = replace(PYTHON, site_directories=("/first", SITE))
    first = replace(dist("numpy", "2.0"), directory="/first")
    found = audit(
        framework("torch", "2.5.1", TORCH, by_default=False),
        inventory=image(first, dist("numpy", "1.24"), interpreters=(two,)),
    )
    assert {"shadowed-distribution", "framework-not-default"} <= codes(found)


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("V100", (7, 0)), ("Tesla V100-SXM2-32GB", (7, 0)), ("sm_70", (7, 0)), ("7.0", (7, 0)), ("sm_100", (10, 0)),
        ("NVIDIA A100-PCIE-40GB", (8, 0)), ("a10", (8, 6)), ("NVIDIA L40S", (8, 9)), ("GeForce RTX 4090", (8, 9)),
        ("h200", (9, 0)), ("sm_90a", (9, 0)), ("12.0", (12, 0)),
    ],
)  # fmt: skip
def test_gpus_by_name(text: str, capability: tuple[int, int]) -> None:
    assert parse_gpu(text) == capability


@pytest.mark.parametrize("text", ["", "V1000", "MI250", "7", "sm_7", "7.0.1", "../x"])
def test_gpu_name_unknown(text: str) -> None:
    with pytest.raises(WrongInput, match="does not know the GPU"):
        parse_gpu(text)


@pytest.mark.parametrize("text", ["", "535.x", "12.4", "v535", "535.104.05.06"])
def test_driver_version_invalid(text: str) -> None:
    with pytest.raises(WrongInput, match="not an NVIDIA driver"):
        parse_driver(text)


def test_the_floors_agree_with_each_other() -> None:
    """A newer CUDA never runs on an older driver; what a toolkit shipped with is at least its floor."""
    rows = compatibility().drivers

    def order(cuda: str) -> tuple[int, ...]:
        return tuple(map(int, cuda.split(".")))

    majors: dict[int, list[tuple[int, ...]]] = {}
    for row in rows:
        majors.setdefault(order(row.cuda)[0], []).append(parse_driver(row.minimum))
        assert row.full is None or parse_driver(row.full) >= parse_driver(row.minimum)
    ordered = sorted(majors)
    for older, newer in itertools.pairwise(ordered):
        assert max(majors[older]) < min(majors[newer])
    single = [row for row in rows if "." in row.cuda]
    for one in single:
        for other in single:
            if order(one.cuda) < order(other.cuda):
                assert parse_driver(one.minimum) <= parse_driver(other.minimum)


def test_every_rule_is_listed_once_by_what_it_judges() -> None:
    listed = {"FrameworkCase": rules.FRAMEWORK_RULES, "ImageCase": rules.IMAGE_RULES}
    found: dict[str, set[object]] = {kind: set() for kind in listed}
    for module in vars(rules).values():
        for function in vars(module).values() if inspect.ismodule(module) else ():
            if inspect.isfunction(function) and function.__annotations__.get("return") == "Iterator[Finding]":
                assert function.__annotations__.keys() == {"case", "return"}, function
                found[function.__annotations__["case"]].add(function)
    assert found == {kind: set(rules_of_kind) for kind, rules_of_kind in listed.items()}
    assert all(len(set(rules_of_kind)) == len(rules_of_kind) for rules_of_kind in listed.values())
