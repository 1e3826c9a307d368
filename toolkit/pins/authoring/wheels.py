"""Frameworks from wheels over a base without them, where no image of a vendor has a known digest: JAX, CuPy, Chainer.

What is known of them is in the tables `wheels` of the frameworks' files. Here they become bases to choose from.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.recipes.model import Base

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.inventory.knowledge.frameworks import Framework, Knowledge, Wheels


@dataclass(frozen=True, slots=True)
class WheelBase(Base):
    """A base with wheels over it, judged as one base is.

    `start` is the name of the base alone, `wheels` are the packages, and those in `skip` hold nothing to import.
    """

    start: str = ""
    wheels: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def packages(self, framework: Framework, lines: Iterable[str]) -> tuple[str, ...]:
        """The packages of a recipe on it: with the versions that `lines` ask of the framework.

        A line that itself chooses the build (`jax[cuda13]`, `cupy-cuda11x`) stays as it is, without our libraries.
        """
        wanted = list(map(Requirement, lines))
        ours = [Requirement(package) for package in self.wheels]
        found = tuple(_with_version(package, framework, wanted) for package in ours)
        if Requirement(found[0]).extras == ours[0].extras:
            return found
        return tuple(line for line, package in zip(found, ours, strict=True) if package.name not in self.skip)


def wheel_bases(bases: Mapping[str, Base], frameworks: Knowledge) -> dict[str, WheelBase]:
    """Each base of `bases` with the wheels that are known over it, by a name that tells both."""
    found = (
        _over(bases[wheels.base], wheels, framework)
        for framework in frameworks.frameworks
        for wheels in framework.wheels
        if wheels.base in bases
    )
    return {base.name: base for base in found}


def _over(base: Base, wheels: Wheels, framework: Framework) -> WheelBase:
    values = {field.name: getattr(base, field.name) for field in fields(base)}
    values |= {
        "name": f"{base.name} with {', '.join(wheels.packages)}",
        "framework": wheels.name or framework.name,
        "framework_version": None,
        "cuda": wheels.cuda,
        "cudnn": wheels.cudnn,
        "driver": wheels.driver,
        "code": wheels.gpu_code,
    }
    return WheelBase(**values, start=base.name, wheels=wheels.packages, skip=wheels.skip)


def _with_version(ours: Requirement, framework: Framework, wanted: Iterable[Requirement]) -> str:
    name = canonicalize_name(ours.name)
    for line in wanted:
        theirs = canonicalize_name(line.name)
        if theirs != name and not (framework.is_variant(theirs) and framework.is_variant(name)):
            continue
        if line.url or line.extras or theirs not in (name, framework.name):
            return str(line)
        ours.specifier = line.specifier or ours.specifier
    return str(ours)
