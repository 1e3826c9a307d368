"""Bases that are really installed: a virtual environment with a framework's wheels, and throwaway copies of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.inventory.contents.distributions import read_distributions
from toolkit.inventory.formats.images import open_image
from toolkit.pins.bases.target import PythonTarget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import Lock, LockedPackage

_INSTALL_TIMEOUT = 1800.0
# Variables of this machine that would change what a container's Python finds, or give it a GPU.
_NOT_THERE = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Installed:
    """A base to install: `roots` as they stood on `date`; `modules` are the frameworks that it holds.

    Images of Python 3.11 hold setuptools: it comes with that Python.
    """

    name: str
    title: str
    date: str
    roots: tuple[str, ...]
    modules: tuple[str, ...]
    python: str = "3.11"


BASES = {
    base.name: base
    for base in (
        Installed(
            "tensorflow", "TensorFlow 2.15", "2024-03-20", ("tensorflow==2.15.1", "pip==23.3.2"), ("tensorflow",)
        ),
        Installed(
            "torch",
            "PyTorch 2.5",
            "2024-11-15",
            (
                "torch==2.5.1",
                "torchvision==0.20.1",
                "torchaudio==2.5.1",
                "numpy==2.1.2",
                "pip==24.2",
                "setuptools==75.1.0",
            ),
            ("torch",),
        ),
        Installed(
            "newest",
            "The newest PyTorch",
            "2026-11-15",
            # Without torchaudio: its last release, 2.11.0, is made for CUDA 13.0 and refuses this torch's 13.2.
            ("torch", "torchvision", "numpy", "pip", "setuptools"),
            ("torch",),
        ),
        Installed(
            "jax",
            "JAX 0.4.35",
            "2024-11-15",
            ("jax[cuda12]==0.4.35", "numpy==2.1.2", "pip==24.2", "setuptools==75.1.0"),
            ("jax",),
        ),
    )
}


@dataclass(frozen=True)
class Environment:
    """A virtual environment on this machine."""

    directory: Path

    @property
    def python(self) -> Path:
        return self.directory / "bin/python"

    @property
    def site(self) -> Path:
        (found,) = self.directory.glob("lib/python3*/site-packages")
        return found

    def target(self) -> PythonTarget:
        """What the resolver must know of it, as if it were an image."""
        with open_image(self.directory) as rootfs:
            site = f"/{self.site.relative_to(self.directory)}"
            found = {distribution.name: distribution for distribution in read_distributions(rootfs, site)}
        libc = os.confstr("CS_GNU_LIBC_VERSION") or "glibc 2.17"
        major, minor = libc.split()[1].split(".")[:2]
        version = _output(self.python, "-c", "import platform; print(platform.python_version())")
        return PythonTarget(version, found, (int(major), int(minor)), executable="/usr/bin/python3")

    @contextlib.contextmanager
    def copied(self, scratch: Path, name: str) -> Iterator[Environment]:
        """A copy by hard links, removed afterwards. Installers unlink a file before they write it: this one stays."""
        directory = scratch / name
        shutil.rmtree(directory, ignore_errors=True)
        scratch.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-al", self.directory, directory], check=True)
        try:
            yield Environment(directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def install_base(uv: Uv, base: Installed, cache: Path) -> Environment:
    """The base, installed below `cache` unless it is there."""
    environment = Environment(cache / "bases" / base.name)
    done = environment.directory / "complete"
    if not done.exists() or done.read_text() != repr(base):
        shutil.rmtree(environment.directory, ignore_errors=True)
        subprocess.run([uv.program, "venv", "--quiet", "--python", base.python, environment.directory], check=True)
        uv_pip(uv, environment, "--exclude-newer", base.date, *base.roots, timeout=_INSTALL_TIMEOUT).check_returncode()
        subprocess.run([environment.python, "-m", "compileall", "-q", environment.site], check=False)
        done.write_text(repr(base))
    return environment


def install_lock(uv: Uv, environment: Environment, lock: Lock, timeout: float) -> str | None:
    """Install exactly the files of a lock. Returns why it failed, in one line; None where it did not.

    Source distributions are built last, as in an image: with the tools of the lock, the base's packages in sight, and
    the compilers of this machine.
    """
    sources = {name for build in lock.builds for name in build.sources}
    steps: list[tuple[list[LockedPackage], list[str], Path | None]] = [
        ([package for package in lock.packages if package.name not in sources], [], None)
    ]
    for number, build in enumerate(lock.builds):
        tools = environment.directory / f"tools-{number}"
        steps.append((list(build.packages), ["--target", str(tools)], None))
        steps.append(
            ([package for package in lock.packages if package.name in build.sources], ["--no-build-isolation"], tools)
        )
    try:
        for packages, options, tools_at in steps:
            for hashed in (True, False):
                some = [package for package in packages if (package.sha256 is not None) == hashed]
                if some and (problem := _install(uv, environment, some, options, tools_at, timeout)):
                    return problem
    except subprocess.TimeoutExpired:
        return f"not installed within {timeout:.0f} s"
    return None


def _install(
    uv: Uv,
    environment: Environment,
    packages: list[LockedPackage],
    options: list[str],
    tools: Path | None,
    timeout: float,
) -> str | None:
    """Install packages that all have a hash, or none."""
    requirements = environment.directory / "requirements.txt"
    lines = (
        (f"{package.name} @ {package.url}" if package.url else f"{package.name}=={package.version}")
        + (f" --hash=sha256:{package.sha256}" if package.sha256 else "")
        for package in packages
    )
    requirements.write_text("".join(f"{line}\n" for line in lines))
    hashes = ["--require-hashes"] if packages[0].sha256 else []
    path = {"PYTHONPATH": str(tools)} if tools else {}
    arguments = [*hashes, "--no-deps", *options, "-r", str(requirements)]
    done = uv_pip(uv, environment, *arguments, timeout=timeout, more=path)
    return None if done.returncode == 0 else _reason(done.stderr)


def uv_pip(
    uv: Uv, environment: Environment, *arguments: str, timeout: float, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`uv pip install` into an environment."""
    argv = [uv.program, "pip", "install", "--no-config", "--python", str(environment.python), *arguments]
    settings = {
        **clean_environment(),
        "UV_CACHE_DIR": str(uv.cache),
        "NO_COLOR": "1",
        "UV_NO_PROGRESS": "1",
        **(more or {}),
    }
    return subprocess.run(argv, capture_output=True, text=True, env=settings, timeout=timeout, check=False)


def clean_environment() -> dict[str, str]:
    """The variables of a container that sees no GPU, with the libraries that its `apt` would have brought."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_THERE}
    libraries = os.environ.get("CTK_BENCH_LIBRARIES")
    return {**kept, "LD_LIBRARY_PATH": libraries} if libraries else kept


def _reason(text: str) -> str:
    """The line that tells most: a compiler's or an exception's, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "rror:" in line or "not found" in line]
    return (telling or lines or ["no reason given"])[-1][:300]


def _output(*argv: str | Path) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def say(text: str) -> None:
    """Progress, beside the results."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
