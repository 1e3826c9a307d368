"""Frameworks that a lock adds and that would compute on the CPU: pip takes such builds without a word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolkit.inventory.knowledge.frameworks import matches
from toolkit.pins.lock.model import RECIPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.inventory.knowledge.frameworks import Framework, Knowledge
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.lock.model import LockedPackage

_PYPI_FILES = "files.pythonhosted.org"
# In a base the wheel that every framework requires: one with only NCCL or cuBLAS says nothing about a framework.
_CUDNN = ("nvidia-cudnn*",)


@dataclass(frozen=True, slots=True)
class CpuBuild:
    """A framework that would compute on the CPU: what it is, and how to get one that computes on a GPU.

    `unasked`: neither its name nor its version says so; on x86-64 the same line of a recipe gives GPU code. `beside` is
    another framework with GPU code, if its own name says that it has none: tensorflow-cpu may read data for PyTorch.
    """

    problem: str
    fix: str
    unasked: bool = False
    beside: str | None = None


def cpu_builds(
    packages: Iterable[LockedPackage], target: PythonTarget, knowledge: Knowledge, *, without_cuda: bool = False
) -> Iterator[CpuBuild]:
    """Each framework of `packages` that would compute on the CPU.

    `without_cuda`: the image has only the libraries of CUDA that Python packages bring.
    """
    locked = tuple(packages)
    found = dict(_found(locked, target, knowledge, without_cuda=without_cuda))
    others = [name for name in (*(package.name for package in locked), *target.installed) if name not in found]
    computing = [known for name in others if (known := knowledge.framework_of(name)) and not known.is_cpu_only(name)]
    for name, build in found.items():
        ours = knowledge.framework_of(name)
        by_name = ours is not None and ours.is_cpu_only(name)
        beside = next((other.title for other in computing if by_name and other != ours), None)
        yield replace(build, beside=beside)


def _found(
    locked: tuple[LockedPackage, ...], target: PythonTarget, knowledge: Knowledge, *, without_cuda: bool
) -> Iterator[tuple[str, CpuBuild]]:
    """Each by the name of its distribution."""
    names = (*(package.name for package in locked), *target.installed)
    for package in locked:
        framework = knowledge.framework_of(package.name)
        if framework is None:
            continue
        what = f"{package.name} {package.version}"
        if why := _named_so(framework, package, names):
            yield package.name, CpuBuild(f"{what} {why}", _fix(framework, package, target))
        elif why := _on_arm(framework, package, locked, target, knowledge):
            yield package.name, CpuBuild(f"{what} {why}", _fix(framework, package, target), unasked=True)
        elif without_cuda and _lacks_libraries(framework, package, locked, target, knowledge):
            why = "computes on the CPU without the libraries of CUDA, which neither the base nor its requirements bring"
            fix = _text(framework, "missing-cuda-library", package.version)
            yield package.name, CpuBuild(f"{what} {why}", fix or _another_base(framework))


def _named_so(framework: Framework, package: LockedPackage, names: tuple[str, ...]) -> str | None:
    """Whether its name, its version or a missing part tells a build for the CPU."""
    if framework.is_cpu_only(package.name):
        return f"is {framework.title} for the CPU only"
    if package.version.partition("+")[2].startswith("cpu"):  # the indexes of PyTorch have 2.6.0+cpu
        return "is a build for the CPU only"
    if framework.gpu_parts and not any(matches(other, framework.gpu_parts) for other in names):
        return f"has no GPU code without {' or '.join(framework.gpu_parts)}"
    return None


def _on_arm(
    framework: Framework,
    package: LockedPackage,
    locked: tuple[LockedPackage, ...],
    target: PythonTarget,
    knowledge: Knowledge,
) -> str | None:
    """Whether it is a wheel of PyPI without GPU code for aarch64.

    What others build there has a local version (2.8.0+cu128 of PyTorch's index, 2.16.1+nv24.8 of NVIDIA), or is named
    by its URL.
    """
    arm = framework.on_arm
    elsewhere = package.url is not None and urlsplit(package.url).hostname != _PYPI_FILES
    if arm is None or target.architecture != "aarch64" or "+" in package.version or elsewhere:
        return None
    if matches(package.name, arm.cpu):
        return f"is a build for the CPU only on {target.architecture}, with any extra"
    required = _libraries({package.name}, locked, knowledge) or any(matches(name, _CUDNN) for name in target.installed)
    if matches(package.name, arm.bound) and not required:
        return f"is a build for the CPU only on {target.architecture}: it requires no library of NVIDIA"
    return None


def _lacks_libraries(
    framework: Framework,
    package: LockedPackage,
    locked: tuple[LockedPackage, ...],
    target: PythonTarget,
    knowledge: Knowledge,
) -> bool:
    """Whether one of the libraries that it needs is missing. Those of another framework may be for another CUDA."""
    there = (*_libraries({package.name, RECIPE}, locked, knowledge), *target.installed)
    return not all(any(matches(name, (needed,)) for name in there) for needed in framework.needs)


def _libraries(roots: set[str], locked: tuple[LockedPackage, ...], knowledge: Knowledge) -> set[str]:
    """The wheels of NVIDIA that `roots` require, themselves or through others of NVIDIA (cuda-toolkit)."""
    libraries = {other.name: other.required_by for other in locked if matches(other.name, knowledge.nvidia)}
    found: set[str] = set()
    while more := {name for name, by in libraries.items() if name not in found and not (roots | found).isdisjoint(by)}:
        found |= more
    return found


def _fix(framework: Framework, package: LockedPackage, target: PythonTarget) -> str:
    elsewhere = _text(framework, "cpu-only-wheel", package.version) if target.architecture == "aarch64" else None
    return elsewhere or _text(framework, "cpu-only-build", package.version) or _another_base(framework)


def _text(framework: Framework, about: str, version: str) -> str | None:
    fix = framework.fix(about, version)
    return fix.text.format(version=version, cuda="") if fix else None


def _another_base(framework: Framework) -> str:
    return f"Choose a base with {framework.title} (`ctk bases --framework {framework.name}`)."
