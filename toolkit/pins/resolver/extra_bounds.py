"""What an extra says of a framework, where the base has that framework: `torch>=2.6; extra == "torch"` is a bound.

A package that works with a framework, and without it too, requires it in an extra only. pip and uv ignore the extra
unless it is requested, and install a release that refuses the installed framework.

The rule. An extra counts where its name says the framework or a device (`torch`, `tf`, `cpu`, `cuda12`), and none of
its words is of the package's own development (`dev-torch`, `tests`, `pinned-tf`): other extras bound a feature, not
the package. A release is refused where all of its extras that count and require the framework want a newer one than
the base has. An upper bound refuses nothing: an older release would not help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.pins.bases.target import valid_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.inventory.knowledge.frameworks import Framework, Knowledge
    from toolkit.pins.lock.protected import Pin

_DEVELOPMENT = re.compile(
    "bench(marks?)?|build|ci|dev(elop(ment)?)?|docs?|examples?|lint|nightly|notebooks?|pinned|quality|release|style|"
    "test(s|ing)?|tutorials?|typing"
)
_DEVICE = re.compile(r"(cpu|gpu|tpu|cuda\d*|rocm\d*|cu\d+)")
_AT_LEAST = (">=", ">", "==", "~=", "===")


@dataclass(frozen=True, slots=True)
class ExtraBound:
    """A bound on a framework that the base is too old for: `torch>=2.6` in the extra `torch`, where the base has 2.5.1.

    `there` is the base's version.
    """

    requirement: str
    extra: str
    there: str

    @property
    def need(self) -> str:
        return f"{self.requirement}, as its extra [{self.extra}] says; the base has {self.there}"

    def why(self, package: str) -> str:
        """Why nothing newer of `package` is taken."""
        return f"newer {package} needs {self.need}"


def find_extra_bound(
    requires: Iterable[str], pins: Iterable[Pin], known: Knowledge, environment: Mapping[str, str]
) -> ExtraBound | None:
    """By what a release with these Requires-Dist refuses a framework among `pins`; None if it refuses none."""
    lines = list(_requirements(requires))
    for pin in pins:
        framework, there = known.framework_of(pin.name), valid_version(pin.version)
        if framework is None or there is None:
            continue
        bounds = list(_bounds(lines, framework, environment))
        newer = [(bound, extra) for bound, extra in bounds if wants_newer(bound, there)]
        if newer and len(newer) == len(bounds):
            requirement, extra = newer[0]
            return ExtraBound(f"{requirement.name}{requirement.specifier}", extra, pin.version)
    return None


def wants_newer(requirement: Requirement, there: Version) -> bool:
    """Whether a requirement needs a newer version than the installed one. A vendor's pre-release counts as release."""
    release = Version(there.base_version)
    for clause in requirement.specifier:
        try:
            least = Version(clause.version.removesuffix(".*"))
        except InvalidVersion:
            continue
        if clause.operator in _AT_LEAST and (release < least or (clause.operator == ">" and release == least)):
            return True
    return False


def _bounds(
    lines: Iterable[Requirement], framework: Framework, environment: Mapping[str, str]
) -> Iterator[tuple[Requirement, str]]:
    """The requirements of the framework in extras that count, each with its extra."""
    for line in lines:
        if line.marker is None or not framework.is_variant(canonicalize_name(line.name)):
            continue
        for extra in re.findall(r"extra == [\"']([^\"']+)[\"']", str(line.marker)):
            if _counts(extra, framework) and line.marker.evaluate({**environment, "extra": extra}):
                yield line, extra


def _counts(extra: str, framework: Framework) -> bool:
    words = set(canonicalize_name(extra).split("-"))
    named = bool(words & set(framework.extras)) or any(map(_DEVICE.fullmatch, words))
    return named and not any(map(_DEVELOPMENT.fullmatch, words))


def _requirements(lines: Iterable[str]) -> Iterator[Requirement]:
    for line in lines:
        try:
            yield Requirement(line)
        except InvalidRequirement:
            continue
