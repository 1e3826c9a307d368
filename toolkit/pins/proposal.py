"""From imports or a list of packages to a recipe: which base, which direct packages, and what a person must decide."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.inventory.frameworks import matches, satisfies
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolkit.inventory.frameworks import Framework, Knowledge
    from toolkit.pins.imports import Imports
    from toolkit.pins.names import Names
    from toolkit.recipes.model import Base

# Without a GPU framework any base with a Python will do; this one needs no registry.
_PLAIN = "debian-12"
_LOCAL = re.compile(r"(===?\s*[^\s,;+]+)\+[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A recipe as it could be: `base` is None where the catalogue has none that fits."""

    base: str | None
    packages: tuple[str, ...]
    findings: tuple[Finding, ...]


def propose_from_imports(
    found: Imports, known: Names, frameworks: Knowledge, bases: Mapping[str, Base], base: str | None = None
) -> Proposal:
    """The direct packages of code, without versions: nothing says which, so none is invented.

    `base` is the one that the person chose; only what it brings is left out.
    """
    findings = [
        Finding("unread-file", Severity.WARNING, f"{file} is not read: {reason}")
        for file, reason in found.unread.items()
    ]
    wanted: dict[str, str] = {}
    for module, where in found.required.items():
        distribution = known.distribution(module)
        if distribution:
            wanted.setdefault(distribution, where)
            continue
        said = "is not on PyPI under that name" if distribution == "" else "is not a module that ctk knows"
        findings.append(
            Finding(
                "unknown-import",
                Severity.WARNING,
                f"{where}: {known.own_name(module)} {said}",
                "If it is a package, `ctk add` it by the name that pip takes.",
            )
        )
    optional = {known.distribution(module) for module in found.optional} - wanted.keys() - {None, ""}
    chooser = _Chooser(known, frameworks, bases)
    return chooser.propose(sorted(wanted), _once(findings), base, sorted(map(str, optional)))


def propose_from_list(
    requirements: Sequence[str],
    known: Names,
    frameworks: Knowledge,
    bases: Mapping[str, Base],
    findings: Iterable[Finding] = (),
    base: str | None = None,
) -> Proposal:
    """The recipe of a list of requirements; their versions are the person's own and stay. `base` as for imports."""
    lines = [_without_local(line) for line in requirements]
    return _Chooser(known, frameworks, bases).propose(lines, list(findings), base)


@dataclass(frozen=True, slots=True)
class _Wish:
    """A framework that is wanted. `line` names it, "" where only companions do; `sole`: some compute with no other."""

    framework: Framework
    line: str
    sole: bool = True


@dataclass(frozen=True, slots=True)
class _Chooser:
    """What a choice is made from: the tables, and the bases of the catalogue."""

    known: Names
    frameworks: Knowledge
    bases: Mapping[str, Base]

    def propose(
        self, lines: list[str], findings: list[Finding], said: str | None, optional: Sequence[str] = ()
    ) -> Proposal:
        """The base that was said, else the one that fits best, and what is to be installed into it."""
        # What is used only if it is there chooses the base where nothing else does.
        wishes = self._wishes(lines) or [wish for wish in self._wishes(optional) if wish.line]
        base = self.bases.get(said or self._best_base(wishes))
        if base is None:
            return Proposal(None, tuple(lines), tuple(findings))
        ours = self._framework_in(base)
        packages = [line for line in lines if not self._brings(base, ours, line)]
        brought = [line for line in lines if line not in packages]
        findings += [found for line in brought if (found := _other_version(base, line, self.frameworks))]
        if more := [one for one in optional if not self._brings(base, ours, one)]:
            message = f"used only if it is there: {', '.join(more)}"
            findings.append(Finding("optional-import", Severity.INFO, message, "`ctk add` it."))
        for line in list(packages):
            framework = self.frameworks.framework_of(_name(line))
            if framework is None or (ours is not None and framework.name == "onnxruntime"):
                continue
            findings.append(_not_brought(line, framework, base, ours, kept=ours is None or said is not None))
            if ours is not None and said is None:
                packages.remove(line)
        return Proposal(base.name, tuple(packages), tuple(findings))

    def _wishes(self, lines: Iterable[str]) -> list[_Wish]:
        """Each framework that is wanted, weightiest first."""
        found: dict[str, _Wish] = {}
        by_name = {one.name: one for one in self.frameworks.frameworks}
        for line in lines:
            framework = self.frameworks.framework_of(_name(line))
            if framework is not None:
                found[framework.name] = _Wish(framework, line)
                continue
            behind = self.known.frameworks_behind(_name(line))
            for name in behind:
                if name not in found or not found[name].sole:
                    found[name] = _Wish(by_name[name], "", sole=len(behind) == 1)
        # What is named itself counts for more than what a companion implies; ONNX Runtime lives beside any of them.
        order = list(by_name)
        return sorted(
            found.values(),
            key=lambda one: (
                one.framework.name == "onnxruntime",
                not one.line,
                not one.sole,
                order.index(one.framework.name),
            ),
        )

    def _best_base(self, wishes: Sequence[_Wish]) -> str:
        """The newest base of the weightiest framework, of those that fit the version asked for; else the plain one."""
        if not wishes:
            return _PLAIN
        first = wishes[0]
        having = [base for base in self.bases.values() if _has(base, first.framework)]
        having.sort(key=lambda base: _version(base.framework_version), reverse=True)
        specifier = str(Requirement(first.line).specifier) if first.line else ""
        fitting = [one for one in having if one.framework_version and satisfies(one.framework_version, specifier)]
        return next((one.name for one in (*fitting, *having)), _PLAIN)

    def _framework_in(self, base: Base) -> Framework | None:
        return next((one for one in self.frameworks.frameworks if _has(base, one)), None)

    def _brings(self, base: Base, ours: Framework | None, line: str) -> bool:
        """Whether a base brings a package itself: its framework, and the GPU libraries of that."""
        name = _name(line)
        if ours is None:
            return False
        if (framework := self.frameworks.framework_of(name)) is not None:
            return framework.name == ours.name
        is_library = matches(name, self.frameworks.nvidia) or matches(name, ours.libraries)
        return is_library or name == canonicalize_name(base.framework or "")


def _has(base: Base, framework: Framework) -> bool:
    name = canonicalize_name(base.framework or "")
    # Chainer computes with CuPy: its images are the ones for both.
    return framework.is_variant(name) or (framework.name == "cupy" and name == "chainer")


def _other_version(base: Base, line: str, frameworks: Knowledge) -> Finding | None:
    specifier = str(Requirement(line).specifier)
    if frameworks.framework_of(_name(line)) is None or base.framework_version is None:
        return None
    if satisfies(base.framework_version, specifier):
        return None
    message = f"{line} is asked for, and the base {base.name} has {base.framework_version}"
    fix = "Choose another one (`ctk bases`), or write one that has it into ./defs/bases.toml."
    return Finding("other-version", Severity.WARNING, message, fix)


def _not_brought(line: str, framework: Framework, base: Base, ours: Framework | None, *, kept: bool) -> Finding:
    """A framework that is wanted and that the base does not have."""
    if ours is None:
        message = f"the base {base.name} does not bring {framework.title}: {line} is installed into it"
        return Finding("framework-added", Severity.WARNING, message, "`ctk bases` lists those that bring a framework.")
    message = (
        f"{line} is another GPU framework: one image holds one, and {base.name} is for {ours.title}; "
        f"it is {'kept all the same' if kept else 'left out'}"
    )
    return Finding("second-framework", Severity.WARNING, message, "Make a recipe for each of them.")


def _without_local(line: str) -> str:
    """`torch==2.6.0+cu124` without `+cu124`: no index has it, and the base decides about CUDA."""
    return line if Requirement(line).url else _LOCAL.sub(r"\1", line)


def _name(line: str) -> str:
    return canonicalize_name(Requirement(line).name)


def _version(text: str | None) -> Version:
    try:
        return Version(text or "0")
    except InvalidVersion:
        return Version("0")


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each module, however many of its parts are imported."""
    found: dict[tuple[str, str], Finding] = {}
    for one in findings:
        found.setdefault((one.code, one.message.partition(": ")[2] or one.message), one)
    return list(found.values())
