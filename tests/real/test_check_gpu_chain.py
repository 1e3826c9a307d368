"""`ctk check-gpu` on the real runtime: every link that can break, with stand-ins for the driver's libraries.

What is compiled into a stand-in, and what is in front of it in the image, decides; each case is one start of a
container.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.driver import compile_driver, compile_library, needing_newer_glibc
from tests.inventory.making import fill
from tests.real.gpu_nodes import NVIDIA, Node, behaving, node, small_torch, variant

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.conftest import User

GPU_A, MIG = "GPU-a0000000-0000-0000-0000-000000000000", "MIG-f0000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def working(me: User, ground: Path) -> Node:
    """A node on which everything works: two GPUs, driver 550."""
    return node(me, ground / "working")


@pytest.fixture(scope="module")
def torch_sandbox(ground: Path, python_sandbox: Path) -> Path:
    """An image that the audit finds ready."""
    return small_torch(python_sandbox, ground / "torch", "9.1.0.70")


def survivors(word: str) -> list[str]:
    """Processes of that name, or with that argument, wherever they run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if word in ((path / "comm").read_text().strip(), *(path / "cmdline").read_text().split("\0")):
                found.append(path.name)
        except OSError:
            continue
    return found


def test_every_gpu_is_described(working: Node, small_python: Path) -> None:
    document, findings = working.check(small_python, status=0)
    assert document["verdict"] == "gpu-visible"
    assert [link["state"] for link in document["links"]] == ["holds", "holds", "holds", "unchecked", "unchecked"]
    assert findings["host-gpu"]["message"] == "This host has 2 GPUs, driver 550.54.15."
    assert findings["driver-bound"]["message"] == "--nv bound 2 libraries of the driver into the container."
    assert findings["gpu-visible"]["message"] == "From inside, driver 550.54.15 shows 2 GPUs, CUDA up to 12.4."
    words = working.user.ctk("check-gpu", small_python, cwd=working.directory, env={"PATH": working.path}).stdout
    assert "✓ GPU 0: Stand-in GPU A, compute capability 7.0, 16 GiB.\n" in words
    assert "✓ GPU 1: Stand-in GPU B, compute capability 7.1, 16 GiB.\n" in words
    assert words.endswith(f"The GPU is visible from inside {small_python}.\n")


# What the driver answers: its settings, CUDA_VISIBLE_DEVICES, the verdict, the code of what breaks, and words of it.
ANSWERS = {
    "stub": ({"FAKE_CUDA_INIT": "34"}, None, "gpu-not-visible", "stub-library", "cuInit returned 34"),
    "exclusive": ({"FAKE_CUDA_INIT": "46"}, None, "gpu-not-visible", "device-unavailable", "exclusive mode"),
    "no-device": ({"FAKE_CUDA_INIT": "100"}, None, "gpu-not-visible", "no-visible-device", "shows no GPU"),
    "system": ({"FAKE_CUDA_INIT": "304"}, None, "gpu-not-visible", "driver-system-error", "operating system call"),
    "fabric": ({"FAKE_CUDA_INIT": "802"}, None, "gpu-not-visible", "system-not-ready", "fabric manager"),
    "mismatch": ({"FAKE_CUDA_INIT": "803"}, None, "gpu-not-visible", "driver-mismatch", "different versions"),
    "geforce": ({"FAKE_CUDA_INIT": "804"}, None, "gpu-not-visible", "compat-not-supported", "data-centre"),
    "uvm": ({"FAKE_CUDA_INIT": "999"}, None, "gpu-not-visible", "unknown-driver-error", "nvidia-uvm"),
    "other": ({"FAKE_CUDA_INIT": "7"}, None, "gpu-not-visible", "cuda-init-failed", "cuInit returned 7"),
    "empty": ({}, "", "gpu-not-visible", "visible-devices-empty", "CUDA_VISIBLE_DEVICES is ''"),
    "wrong": ({}, "7", "gpu-not-visible", "visible-devices-wrong", "'7' is no GPU here"),
    "partly-wrong": ({}, "0,9", "gpu-visible", "visible-devices-wrong", "hides that entry and all behind"),
    "command": ({}, "0,$(echo 1)`echo 1`", "gpu-visible", "visible-devices-wrong", "'$(echo 1)`echo 1`' is no GPU"),
    "by-index": ({}, "1", "gpu-visible", "gpu", "GPU 0: Stand-in GPU B"),
    "by-uuid": ({}, GPU_A, "gpu-visible", "gpu", "GPU 0: Stand-in GPU A"),
    "mig": ({"FAKE_MIG": "1"}, MIG, "gpu-visible", "gpu", "7.0, 16 GiB, a MIG device."),
    "wrong-mig": ({"FAKE_MIG": "1"}, "MIG-77", "gpu-not-visible", "visible-devices-wrong", "'MIG-77' is no GPU here"),
    "mig-unused": (
        {"FAKE_MIG": "2", "FAKE_CUDA_INIT": "100"}, None, "gpu-not-visible", "mig-without-devices", "no MIG device",
    ),
    "one-fails": ({"FAKE_CONTEXT": "0,719"}, None, "broken", "gpu-failed", "GPU 1 (Stand-in GPU B, GPU-a1"),
    "all-taken": (
        {"FAKE_CONTEXT": "46,46", "FAKE_COMPUTE_MODE": "3,3"},
        None, "gpu-not-visible", "device-unavailable", "(error 46)",
    ),
    "prohibited": (
        {"FAKE_CONTEXT": "46,46", "FAKE_COMPUTE_MODE": "2,2"},
        None, "gpu-not-visible", "compute-prohibited", "Prohibited",
    ),
    "ecc": ({"FAKE_ECC": "0,3"}, None, "gpu-visible", "ecc-errors", "GPU 1 has had 3 uncorrected ECC errors"),
    "ecc-fails": ({"FAKE_CONTEXT": "0,214"}, None, "broken", "ecc-error", "ECC cannot correct"),
    "filled": ({"FAKE_FREE_MIB": "100,16000"}, None, "gpu-visible", "gpu-memory-used", "0.1 GiB of 16.0 GiB free"),
    "full": (
        {"FAKE_CONTEXT": "2,0", "FAKE_FREE_MIB": "0,16000"}, None, "broken", "gpu-memory-full", "no free memory",
    ),
    "nvml": ({"FAKE_NVML_INIT": "18"}, None, "gpu-visible", "nvml-failed", "NVML returned 18"),
    "segfault": ({"FAKE_CUDA_SIGNAL": "11"}, None, "gpu-not-visible", "driver-crashes", "SIGSEGV ended the probe in"),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_each_answer_has_its_own_verdict_and_remedy(case: str, me: User, small_python: Path, ground: Path) -> None:
    settings, visible, verdict, code, words = ANSWERS[case]
    here = node(me, ground / f"answers-{case}", **settings)
    env = {"CUDA_VISIBLE_DEVICES": visible} if visible is not None else {}
    document, findings = here.check(small_python, status=0 if verdict == "gpu-visible" else 1, env=env)
    assert document["verdict"] == verdict
    assert words in findings[code]["message"]
    assert findings[code]["fix"] or findings[code]["severity"] == "ok"
    broken = [link["name"] for link in document["links"] if link["state"] == "broken"]
    assert broken == ([] if verdict == "gpu-visible" else ["driver"])
    if verdict == "gpu-not-visible":
        assert code in next(link["findings"] for link in document["links"] if link["name"] == "driver")


def test_driver_that_hangs_is_ended_with_all_that_it_started(me: User, small_python: Path, ground: Path) -> None:
    here = node(me, ground / "hangs", FAKE_CUDA_HANG="ctk-hangs-x")
    document, findings = here.check(small_python, "--timeout", "1.5", status=1)
    assert document["verdict"] == "gpu-not-visible"
    assert findings["driver-hangs"]["message"].startswith("The driver did not answer within 1.5 s: cuInit")
    assert survivors("ctk-hangs-x") == []


def test_container_ends_with_a_ctk_that_is_killed(me: User, small_python: Path, ground: Path) -> None:
    here = node(me, ground / "killed", FAKE_CUDA_HANG="ctk-killed-x")
    words = here.user.command(here.user.program, "check-gpu", small_python)
    environment = {**here.user.environment, "PATH": here.path}
    with subprocess.Popen(words, cwd=here.directory, env=environment, stdout=subprocess.DEVNULL) as program:
        begun = _settles(lambda: survivors("ctk-killed-x") != [])
        program.kill()
    assert begun
    assert _settles(lambda: survivors("ctk-killed-x") == [])


def _settles(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


# What stands in for the image's Python, the limit of seconds, the status of the command, and the code of the finding.
STAND_INS = {
    "forged": ("echo 'ctk-probe:[1]'", "20", "unreadable-answer"),
    "endless": ("exec yes", "1", "python-fails"),
    "long": ("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo 'ctk-probe:{}'", "20", "unreadable-answer"),
}


@pytest.mark.parametrize("case", STAND_INS)
def test_program_in_place_of_python_is_not_believed(
    case: str, working: Node, python_sandbox: Path, ground: Path
) -> None:
    script, limit, code = STAND_INS[case]
    image = variant(python_sandbox, ground / f"stand-in-{case}", {"usr/bin/python3": f"#!/bin/sh\n{script}\n"})
    (image / "usr/bin/python3").chmod(0o755)
    document, findings = working.check(image, "--timeout", limit, status=1)
    assert document["verdict"] == "not-known"
    assert findings[code]["severity"] == "error"
    shutil.rmtree(image)


# --- What the runtime bound, and what is in front of it.


def test_driver_without_libcuda(me: User, small_python: Path, ground: Path) -> None:
    drivers = compile_driver(ground / "no-libcuda-driver", ("libnvidia-ml",))
    document, findings = node(me, ground / "no-libcuda", libraries=drivers).check(small_python, status=1)
    assert (document["verdict"], document["links"][1]["state"]) == ("gpu-not-visible", "broken")
    assert "libcuda.so.1: cannot open shared object file" in findings["libcuda-not-bound"]["message"]


def test_driver_that_ldconfig_does_not_know(me: User, small_python: Path, ground: Path) -> None:
    nothing = ground / "no-driver"
    nothing.mkdir()
    _, findings = node(me, ground / "not-bound", libraries=nothing).check(small_python, status=1)
    assert "--nv bound nothing of its driver 550.54.15" in findings["driver-not-bound"]["message"]


def test_nvidia_smi_without_libraries(me: User, python_sandbox: Path, ground: Path) -> None:
    nothing = ground / "no-driver-either"
    nothing.mkdir()
    here = node(me, ground / "only-smi", libraries=nothing)
    smi = here.directory / "bin/nvidia-smi"
    smi.write_text("#!/bin/sh\n")
    smi.chmod(0o755)
    _, findings = here.check(python_sandbox, status=1)
    assert "nvidia-smi, but no library" in findings["nvidia-smi-without-libraries"]["message"]


def test_driver_for_a_newer_c_library(me: User, small_python: Path, ground: Path) -> None:
    drivers = needing_newer_glibc(ground / "newer-glibc-driver")
    _, findings = node(me, ground / "newer-glibc", libraries=drivers).check(small_python, status=1)
    assert "GLIBC_2.99' not found" in findings["glibc-too-old"]["message"]
    assert "newer base" in findings["glibc-too-old"]["fix"]


@pytest.mark.parametrize(
    ("directory", "number", "code", "audited"),
    [
        ("usr/local/cuda/lib64/stubs", "34", "stub-library", "stub-libcuda-first"),
        ("usr/local/cuda/compat", "803", "driver-mismatch", "compat-libcuda-first"),
    ],
)
def test_library_of_the_image_in_front_of_the_drivers(
    working: Node, python_sandbox: Path, ground: Path, directory: str, number: str, code: str, audited: str
) -> None:
    front = compile_library(ground / f"front-{number}/libcuda.so.1", FAKE_CUDA_INIT=number)
    files = {
        f"{directory}/libcuda.so.1": front.read_bytes(),
        ".singularity.d/env/90-environment.sh": f"export LD_LIBRARY_PATH=/{directory}\n",
    }
    image = variant(python_sandbox, ground / f"in-front-{number}", files)
    _, findings = working.check(image, status=1)
    assert f"It was loaded from /{directory}/libcuda.so.1." in findings[code]["message"]
    assert f"/{directory}/libcuda.so.1" in findings[audited]["message"]


def test_specification_of_the_device_interface_for_another_driver(me: User, small_python: Path, ground: Path) -> None:
    mount = "mounts:\n- {hostPath: /usr/lib/libcuda.so.535.104.05, containerPath: /usr/lib/libcuda.so.535.104.05}\n"
    host = {**NVIDIA, "etc/cdi/nvidia.yaml": mount}
    document, findings = node(me, ground / "stale", host=host).check(small_python, status=0)
    assert document["verdict"] == "gpu-visible"
    assert "/etc/cdi/nvidia.yaml is for driver 535.104.05" in findings["cdi-spec-stale"]["message"]


def test_image_without_python(working: Node, tiny_image: Path) -> None:
    document, findings = working.check(tiny_image, status=1)
    assert document["verdict"] == "not-known"
    assert "nvidia-smi -L" in findings["no-python-in-image"]["fix"]


# --- Frameworks

FRAMEWORKS = {
    "honest": ("gpu-used", "framework-computes", "the driver found the result in its memory"),
    "lying": ("cpu-fallback", "result-not-on-gpu", "the result is not in the memory of a GPU"),
    "blind": ("cpu-fallback", "framework-sees-no-gpu", "torch.cuda.is_available() is False (built for 12.4)"),
    "wrong": ("broken", "wrong-result", "differs from the CPU's"),
    "failing": ("broken", "framework-compute-fails", "no kernel image is available"),
    "raising": ("broken", "framework-import-fails", "libcudart.so.12: cannot open"),
    "exiting": ("broken", "framework-import-fails", "SystemExit: no licence"),
    "crashing": ("broken", "framework-crashes", "SIGSEGV ended it in the step 'import'"),
    "hanging": ("broken", "framework-hangs", "did not finish within 3 s, and was ended in the step 'import'"),
    "leaving": ("cpu-fallback", "framework-leaves-processes", "left 1 process (busybox)"),
}


@pytest.mark.parametrize("behaviour", FRAMEWORKS)
def test_framework_is_believed_only_where_the_driver_agrees(
    behaviour: str, working: Node, torch_sandbox: Path, ground: Path
) -> None:
    verdict, code, words = FRAMEWORKS[behaviour]
    image = behaving(behaviour, torch_sandbox, ground / "chain")
    limit = ("--timeout", "3") if behaviour == "hanging" else ()
    document, findings = working.check(image, *limit, status=0 if verdict == "gpu-used" else 1)
    assert document["verdict"] == verdict
    assert words in findings[code]["message"]
    assert findings[code]["fix"] or verdict == "gpu-used"
    assert [link["framework"] for link in document["links"][3:]] == ["PyTorch", "PyTorch"]
    assert survivors("60123") == [], "torch_stand_in.py starts a process with this argument"
    shutil.rmtree(image)


def test_driver_too_old(me: User, torch_sandbox: Path, ground: Path) -> None:
    old = node(me, ground / "old-driver", FAKE_DRIVER="470.42.01", FAKE_CUDA_VERSION="11040")
    image = behaving("blind", torch_sandbox, ground / "old")
    document, findings = old.check(image, status=1)
    assert document["verdict"] == "cpu-fallback"
    assert (
        "needs NVIDIA driver 525.60.13 or newer, and the target has 470.42.01" in findings["driver-too-old"]["message"]
    )
    assert [link["state"] for link in document["links"]] == ["holds"] * 4 + ["broken"]
    document, _ = old.check(image, "--framework", "none", status=1)
    assert (document["verdict"], document["checks"]) == ("broken", [])
    assert document["links"][-1]["findings"] == ["driver-too-old"]


def test_gpu_that_the_build_does_not_cover(working: Node, python_sandbox: Path, ground: Path) -> None:
    image = behaving(
        "failing", small_torch(python_sandbox, ground / "newer-cudnn", "9.28.0.42"), ground / "not-covered"
    )
    document, findings = working.check(image, status=1)
    assert document["verdict"] == "broken"
    assert "no kernel image is available" in findings["framework-compute-fails"]["message"]
    assert "does not run on Stand-in GPU" in findings["gpu-not-covered"]["message"]


def test_environment_of_the_user_is_kept_out_and_named(
    me: User, working: Node, torch_sandbox: Path, ground: Path
) -> None:
    image = behaving("honest", torch_sandbox, ground / "kept-out")
    packages = me.home / f".local/lib/{Path('/usr/bin/python3').resolve().name}/site-packages"
    fill(packages, {"torch/__init__.py": "raise ImportError('of the user')\n"})
    env = {
        "PYTHONPATH": str(packages),
        "APPTAINERENV_LD_LIBRARY_PATH": "/nowhere",
        "APPTAINERENV_FAKE_CUDA_INIT": "999",
    }
    try:
        document, findings = working.check(image, status=0, env=env)
    finally:
        shutil.rmtree(me.home / ".local")
    assert document["verdict"] == "gpu-used"
    assert "has torch: a plain `apptainer exec` imports that" in findings["user-site-shadows"]["message"]
    variables = [finding["message"] for finding in document["findings"] if finding["code"] == "user-variable"]
    assert [words.partition(" is set")[0] for words in variables] == [
        "PYTHONPATH",
        "APPTAINERENV_LD_LIBRARY_PATH (in the container: LD_LIBRARY_PATH)",
    ]


# --- AMD, with a stand-in for HIP only: ctk has never seen a real one.

AMD = {"dev/kfd": "", "dev/dri/renderD128": "", "sys/module/amdgpu/version": "6.8.5\n"}


@pytest.mark.parametrize(
    ("settings", "verdict", "code"),
    [({}, "gpu-visible", "gpu"), ({"FAKE_HIP_COUNT": "0"}, "gpu-not-visible", "kfd-not-bound")],
)
def test_amd_chain(
    me: User, ground: Path, python_sandbox: Path, settings: dict[str, str], verdict: str, code: str
) -> None:
    name = f"amd-{code}"
    here = node(me, ground / name, libraries=ground, host=AMD)
    library = compile_library(ground / name / "libamdhip64.so", **settings)
    files = {"opt/rocm/lib/libamdhip64.so": library.read_bytes()}
    image = variant(python_sandbox, ground / f"{name}-image", files)
    document, findings = here.check(image, status=0 if verdict == "gpu-visible" else 1)
    assert (document["verdict"], document["host"]["vendor"]) == (verdict, "amd")
    assert code in findings
    assert findings["host-gpu"]["message"] == "This host has 1 GPU, driver 6.8.5."
