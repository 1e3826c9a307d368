"""Frameworks that a lock adds and that would compute on the CPU: pip takes such builds without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.knowledge.frameworks import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.inventory.knowledge.frameworks import Framework, Knowledge
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.lock.model import LockedPackage


def cpu_builds(
    packages: Iterable[LockedPackage], target: PythonTarget, knowledge: Knowledge
) -> Iterator[tuple[str, str]]:
    """Each framework of `packages` that has no GPU code: what it is, and how to get a build that has."""
    locked = {package.name: package.version for package in packages}
    names = (*locked, *target.installed)
    for name, version in locked.items():
        framework = knowledge.framework_of(name)
        why = _why(framework, name, version, names, target.architecture, knowledge) if framework is not None else None
        if framework is not None and why is not None:
            elsewhere = framework.fix("cpu-only-wheel", version) if target.architecture != "x86_64" else None
            fix = elsewhere or framework.fix("cpu-only-build", version)
            text = fix.text.format(version=version, cuda="") if fix else None
            yield f"{name} {version} {why}", text or f"Choose a base with {framework.title} (`ctk bases`)."


def _why(
    framework: Framework, name: str, version: str, names: tuple[str, ...], architecture: str, knowledge: Knowledge
) -> str | None:
    if framework.is_cpu_only(name):
        return f"is {framework.title} for the CPU only"
    local = version.partition("+")[2]
    if local.startswith("cpu"):  # the indexes of PyTorch have 2.6.0+cpu
        return "is a build for the CPU only"
    if framework.gpu_parts and not any(matches(other, framework.gpu_parts) for other in names):
        return f"has no GPU code without {' or '.join(framework.gpu_parts)}"
    with_libraries = local.startswith("cu")  # wheels of PyTorch's own indexes (2.8.0+cu128); pytorch issue #160162
    if architecture != "x86_64" and not with_libraries and not any(matches(other, knowledge.nvidia) for other in names):
        # There a wheel with GPU code requires NVIDIA's wheels; on x86-64 older ones contain the libraries themselves.
        return f"is a build for the CPU only on {architecture}: it requires no library of NVIDIA"
    return None
