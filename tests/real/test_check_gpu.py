"""`ctk check-gpu` on the real runtime: without a GPU, and with stand-ins for the driver's libraries.

The runtime finds the driver with `ldconfig -p`, and looks for `ldconfig.real` on PATH first: a shim of that name tells
it of the stand-ins, which it then binds with --nv as it would the real ones.
"""

from __future__ import annotations

import _ctypes
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.driver import compile_driver

if TYPE_CHECKING:
    from tests.real.conftest import User

SHIM = """#!/bin/sh
for library in {directory}/*.so.1; do
    echo "	$(basename "$library") (libc6,x86-64) => $library"
done
exec /sbin/ldconfig -p
"""


@pytest.fixture(scope="session")
def python_image(ground: Path, me: User) -> Path:
    """This machine's own Python and the libraries that it needs: made in seconds, where base_image takes a minute."""
    root = ground / "python"
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "root", "home", "var/tmp", "usr"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin")
    (root / "bin/sh").symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    interpreter = Path("/usr/bin/python3").resolve()
    version = interpreter.name
    needed = subprocess.run(["ldd", interpreter, _ctypes.__file__], capture_output=True, text=True, check=True).stdout
    for path in {str(interpreter), *re.findall(r"(?:=> |^\t)(/\S+)", needed, re.MULTILINE)}:
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path.lstrip("/"))
    (root / "usr/bin/python3").symlink_to(version)
    standard = Path(f"/usr/lib/{version}")
    shutil.copytree(
        standard,
        root / str(standard).lstrip("/"),
        ignore=shutil.ignore_patterns("__pycache__", "test", "idlelib", "lib2to3", "config-*", "*.a", "ensurepip"),
        dirs_exist_ok=True,
    )
    image = ground / "python.sif"
    me.run("apptainer", "build", "--fakeroot", image, root, cwd=ground)
    image.chmod(0o644)
    return image


@pytest.fixture(scope="session")
def driver(ground: Path) -> dict[str, str]:
    """The PATH of a user on a node whose driver libraries are stand-ins."""
    libraries = compile_driver(ground / "driver")
    shim = ground / "driver-bin" / "ldconfig.real"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(directory=libraries))
    shim.chmod(0o755)
    return {"PATH": f"{shim.parent}:{os.environ['PATH']}"}


def check(
    user: User, image: Path, directory: Path, *, status: int, env: dict[str, str] | None = None
) -> tuple[str, dict[str, str], str]:
    """check-gpu's verdict, its findings by code, and the words that a user reads."""
    done = user.ctk("check-gpu", image, "--json", cwd=directory, status=status, env=env)
    document = json.loads(done.stdout)
    assert document["schema"] == "ctk.probe/1"
    words = user.ctk("check-gpu", image, cwd=directory, status=status, env=env).stdout
    return document["verdict"], {finding["code"]: finding["message"] for finding in document["findings"]}, words


def test_a_host_without_a_gpu_says_so(user: User, directory: Path, python_image: Path) -> None:
    verdict, findings, words = check(user, python_image, directory, status=3)
    assert verdict == "no-gpu-on-host"
    assert list(findings) == ["no-gpu-on-host", "driver-not-bound"]
    assert f"This host has no GPU; {python_image} could not be checked." in words


def test_two_gpus_are_seen_through_the_runtimes_own_binding(
    user: User, directory: Path, python_image: Path, driver: dict[str, str]
) -> None:
    verdict, findings, words = check(user, python_image, directory, status=0, env=driver)
    assert verdict == "gpu-visible"
    assert findings["driver-bound"] == "--nv bound 2 libraries of the driver into the container."
    assert findings["gpu-visible"] == "From inside, driver 550.54.15 shows 2 GPUs, CUDA up to 12.4."
    assert "GPU 0: Stand-in GPU A, compute capability 7.0, 16 GiB." in words
    assert "GPU 1: Stand-in GPU B, compute capability 7.1, 16 GiB." in words
    assert words.endswith(f"The GPU is visible from inside {python_image}.\n")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"FAKE_CUDA_INIT": "34"}, "stub-library"),
        ({"FAKE_CUDA_INIT": "46"}, "device-unavailable"),
        ({"FAKE_CUDA_INIT": "100"}, "no-visible-device"),
        ({"FAKE_CUDA_INIT": "802"}, "system-not-ready"),
        ({"FAKE_CUDA_INIT": "803"}, "driver-mismatch"),
        ({"FAKE_CUDA_INIT": "804"}, "compat-not-supported"),
        ({"FAKE_CUDA_INIT": "999"}, "unknown-driver-error"),
        ({"FAKE_CUDA_INIT": "7"}, "cuda-init-failed"),
        ({"FAKE_CUDA_COUNT": "0", "CUDA_VISIBLE_DEVICES": ""}, "no-visible-device"),
    ],
)
def test_each_refusal_of_the_driver_is_explained(
    me: User, ground: Path, python_image: Path, driver: dict[str, str], settings: dict[str, str], code: str
) -> None:
    done = me.ctk("check-gpu", python_image, "--json", cwd=ground, status=1, env={**driver, **settings})
    document = json.loads(done.stdout)
    assert document["verdict"] == "gpu-not-visible"
    finding = document["findings"][-1]
    assert (finding["code"], finding["severity"]) == (code, "error")
    assert "/.singularity.d/libs/libcuda.so.1" in finding["message"]
    assert finding["fix"]


def test_an_image_without_python_is_not_called_blind(
    me: User, ground: Path, tiny_image: Path, driver: dict[str, str]
) -> None:
    assert check(me, tiny_image, ground, status=3, env=driver)[0] == "no-gpu-on-host"


# --- ctk run


def test_the_exit_status_of_a_command_is_passed_on(user: User, directory: Path, tiny_image: Path) -> None:
    for status in (0, 1, 3, 77, 127, 255):
        user.ctk("run", tiny_image, "--", "sh", "-c", f"exit {status}", cwd=directory, status=status)


def test_what_cannot_be_started_has_the_status_of_a_shell(user: User, directory: Path, tiny_image: Path) -> None:
    user.run("tee", "plain.txt", cwd=directory, input="not a program\n")
    for command, status, words in (
        ("no-such-command", 127, "the image has no program no-such-command"),
        ("./no-such-file", 127, "./no-such-file does not exist in the container"),
        ("./plain.txt", 126, "./plain.txt is not an executable file"),
    ):
        assert words in user.ctk("run", tiny_image, "--", command, cwd=directory, status=status).stderr
    assert "no program nosuch" in user.ctk("shell", tiny_image, "--", "nosuch", cwd=directory, status=127).stderr


WORDS = [
    *("", " ", "a b", "'", '"', "\\", "$HOME", "$(id)", "`id`", "*", "~", "#", ";", "&&", "a=b", "%post", "{{ x }}"),
    *("-", "--", "--help", "--nv", "-c", "--json", "--trace", "\n", "a\n\nb\t", "日本", "é", "!", "\\n", "\x01", "end"),
]


def test_arguments_arrive_exactly(user: User, directory: Path, tiny_image: Path) -> None:
    done = user.ctk(
        "run", tiny_image, "--", "sh", "-c", 'for word; do printf "%s\\037" "$word"; done', "sh", *WORDS, cwd=directory
    )
    assert done.stdout.split("\x1f") == [*WORDS, ""]


def test_the_printed_command_is_the_one_that_runs(user: User, directory: Path, tiny_image: Path) -> None:
    words = ["sh", "-c", 'echo "$1$PYTHONNOUSERSITE"', "sh", "it's "]
    printed = user.ctk("run", tiny_image, "--dry-run", "--", *words, cwd=directory).stdout
    assert user.run("sh", "-c", printed, cwd=directory).stdout == "it's 1\n"
    assert user.ctk("run", tiny_image, "--", *words, cwd=directory).stdout == "it's 1\n"


def test_a_link_that_leads_out_is_named_with_the_bind_that_mends_it(
    user: User, directory: Path, tiny_image: Path
) -> None:
    user.run("ln", "-s", "/srv", "data", cwd=directory)
    done = user.ctk("run", tiny_image, "--", "true", cwd=directory)
    assert "data leads to /srv, which is not mounted in the container" in done.stderr
    assert "--bind /srv" in done.stderr
    bound = user.ctk("run", tiny_image, "--bind", "/srv", "--", "ls", "-d", "data/.", cwd=directory)
    assert bound.stdout == "data/.\n"
    assert "leads to" not in bound.stderr


# --- a host that has only `singularity`


@pytest.fixture(scope="session")
def only_singularity(ground: Path) -> dict[str, str]:
    """A PATH on which the runtime is called `singularity` and nothing is called `apptainer`."""
    only = ground / "only-singularity"
    only.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir():
            link = only / program.name
            if program.name not in ("apptainer", "singularity") and not link.is_symlink():
                link.symlink_to(program)
    (only / "singularity").symlink_to(str(shutil.which("apptainer")))
    return {"PATH": str(only)}


def test_with_only_a_singularity_command_everything_works(
    user: User, directory: Path, tiny_image: Path, python_image: Path, only_singularity: dict[str, str]
) -> None:
    user.run("mkdir", "defs", cwd=directory)
    user.run("tee", "defs/mine.toml", cwd=directory, input='base = "debian-12"\npost = "touch /opt/made"\n')
    traced = user.ctk("build", "mine", "--base", tiny_image, "--trace", cwd=directory, env=only_singularity)
    assert "/singularity build " in traced.stderr
    assert "/apptainer build " not in traced.stderr
    assert user.ctk("run", "mine.sif", "--", "ls", "/opt", cwd=directory, env=only_singularity).stdout == "made\n"
    assert check(user, python_image, directory, status=3, env=only_singularity)[0] == "no-gpu-on-host"
    said = user.ctk("inspect", "mine.sif", "--json", cwd=directory, env=only_singularity).stdout
    assert json.loads(said)["labels"]["ctk.recipe"] == "mine"
