"""What the files of an image tell of it as a base: the facts of an entry of `bases.toml`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolkit.recipes.bases import is_valid
from toolkit.recipes.model import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.facts import FrameworkFacts, ImageFacts
    from toolkit.recipes.model import Base

# os-release's ID where the usual spelling is more than a capital letter.
_SYSTEMS = {
    "rhel": "RHEL",
    "almalinux": "AlmaLinux",
    "opensuse-leap": "openSUSE Leap",
    "centos": "CentOS",
    "ol": "Oracle Linux",
}
_CODE = re.compile(r"(sm|compute)_(\d{2,3})[af]?")


def describe_base(base: Base, image: ImageFacts) -> Base:
    """The base with what its image tells. What the image does not tell stays as it is."""
    inventory, framework = image.inventory, _framework(image)
    default = inventory.default_interpreter()
    path = framework.interpreter if framework is not None else default.path if default is not None else None
    python = next((found for found in inventory.interpreters if found.path == path), None)
    facts: dict[str, Any] = {
        "python": python.version if python is not None else None,
        "python_path": path,
        "os": _system(inventory.os),
        "glibc": inventory.glibc,
        "cuda": _short(image.library_version("cudart"), 2),
        "cudnn": image.library_version("cudnn"),
    }
    if inventory.architecture in ARCHITECTURES and not base.architectures:
        facts["architectures"] = (inventory.architecture,)
    if framework is not None:
        facts["framework"] = framework.distribution.name
        facts["framework_version"] = framework.distribution.version
        facts["cuda"] = _short(framework.build.cuda, 2) or facts["cuda"]
        facts["cudnn"] = facts["cudnn"] or framework.build.cudnn
        facts["code"] = _code(framework.build.architectures)
        facts["rocm"] = framework.build.rocm
        facts["installer"] = "conda" if framework.distribution.installer == "conda" else "pip"
    return replace(base, **{key: value for key, value in facts.items() if value and _fits(key, value)})


def _fits(key: str, value: Any) -> bool:
    """Whether the catalogue can record a value: some builds have versions of no usual form."""
    return not isinstance(value, str) or is_valid(key, value)


def _framework(image: ImageFacts) -> FrameworkFacts | None:
    """The framework of the Python that users get, else that of another one."""
    found = image.frameworks
    return next((framework for framework in found if framework.by_default), next(iter(found), None))


def _short(version: str | None, parts: int) -> str | None:
    return ".".join(version.split(".")[:parts]) if version else None


def _system(os: str) -> str | None:
    name, _, release = os.partition(" ")
    return f"{_SYSTEMS.get(name, name.capitalize())} {release}".strip() or None


def _code(architectures: Iterable[str]) -> tuple[str, ...]:
    """Binary code and PTX, oldest GPUs first: `sm_90` comes before `compute_90`."""
    found = {match[0]: (int(match[2]), match[1] == "compute") for match in map(_CODE.fullmatch, architectures) if match}
    return tuple(sorted(found, key=lambda name: (found[name], name)))
