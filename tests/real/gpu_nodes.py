"""GPU nodes without a GPU: images with a Python, stand-ins of driver libraries that the runtime binds, and host files.

The runtime finds the driver with `ldconfig -p`, and looks for `ldconfig.real` on PATH first: a shim of that name tells
it of the stand-ins, which it then binds with --nv as it would the real ones. What ctk reads of the host (/sys, /dev) is
in a directory, which a program that starts ctk names to it.
"""

from __future__ import annotations

import _ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.driver import compile_driver
from tests.gpu import small_images
from tests.inventory.making import fill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.real.conftest import User

_SHIM = """#!/bin/sh
for library in {directory}/*.so.1; do
    echo "	$(basename "$library") (libc6,x86-64) => $library"
done
exec /sbin/ldconfig -p
"""
_CTK = """#!{python}
import functools, sys
from pathlib import Path
from toolkit.gpu import check, host
check.any_gpu = functools.partial(host.any_gpu, Path({root!r}))
from toolkit.__main__ import main
sys.exit(main())
"""
NVIDIA = {"sys/module/nvidia/version": "550.54.15\n", "dev/nvidia0": "", "dev/nvidia1": ""}


def python_root(root: Path) -> Path:
    """This machine's own Python and the libraries that it needs, as the root directory of an image."""
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "root", "home", "var/tmp", "usr/lib/python3/dist-packages"):
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
    return root


def variant(original: Path, directory: Path, files: Mapping[str, str | bytes]) -> Path:
    """A sandbox that is `original` with more files: made of hard links, in no time."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-alT", original, directory], check=True)
    for name in files:
        (directory / name).unlink(missing_ok=True)  # not to write into the original
    return fill(directory, dict(files))


def small_torch(python_sandbox: Path, directory: Path, cudnn: str) -> Path:
    """torch of CUDA 12.4 with a cuDNN, as the audit reads it."""
    made = small_images.torch(cudnn=cudnn)
    return variant(
        python_sandbox, directory, {path.replace(small_images.SITE, torch_site()): text for path, text in made.items()}
    )


def torch_site() -> str:
    """Where this machine's Python, which is the image's, looks for packages."""
    version = Path("/usr/bin/python3").resolve().name
    return f"usr/local/lib/{version}/dist-packages"


def behaving(behaviour: str, torch_sandbox: Path, directory: Path) -> Path:
    """The image with a torch that behaves in one way."""
    source = (Path(__file__).parents[1] / "data/torch_stand_in.py").read_text(encoding="utf-8")
    text = source.replace('BEHAVIOUR = "lying"', f'BEHAVIOUR = "{behaviour}"')
    return variant(torch_sandbox, directory / behaviour, {f"{torch_site()}/torch/__init__.py": text})


def driver_shim(drivers: Path) -> str:
    """The program `ldconfig.real` of a host whose driver libraries are in the directory `drivers`."""
    return _SHIM.format(directory=drivers)


@dataclass(frozen=True)
class Node:
    """A node with a stand-in driver, and the user who works on it."""

    user: User
    directory: Path

    @cached_property
    def path(self) -> str:
        return f"{self.directory / 'bin'}:{os.environ['PATH']}"

    def check(
        self, image: Path, *options: str, status: int, env: Mapping[str, str] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
        """The document of check-gpu and its findings by code."""
        environment = {"PATH": self.path, **(env or {})}
        done = self.user.ctk("check-gpu", image, *options, "--json", cwd=self.directory, status=status, env=environment)
        document = json.loads(done.stdout)
        assert document["schema"] == "ctk.check-gpu/1"
        return document, {finding["code"]: finding for finding in document["findings"]}


def node(
    user: User, directory: Path, *, libraries: Path | None = None, host: Mapping[str, str] = NVIDIA, **settings: str
) -> Node:
    """A node whose driver is in `libraries`, or is compiled with `settings`. Its files of the host are `host`."""
    drivers = libraries or compile_driver(directory / "driver", **settings)
    shim, program = directory / "bin/ldconfig.real", directory / "ctk"
    shim.parent.mkdir(parents=True)
    shim.write_text(driver_shim(drivers))
    fill(directory / "host", dict(host))
    program.write_text(_CTK.format(python=sys.executable, root=str(directory / "host")))
    for path in (shim, program):
        path.chmod(0o755)
    return Node(replace(user, program=program), directory)
