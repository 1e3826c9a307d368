"""From imports or a list of packages to a recipe: which base, which direct packages, and what a user must decide."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import matches, satisfies
from toolkit.pins.authoring.plots import font_note
from toolkit.pins.authoring.purpose import find_old_code, used_for_data
from toolkit.pins.authoring.wheels import WheelBase
from toolkit.recipes.model import Bootstrap
from toolkit.recipes.preference import version_of
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolkit.inventory.knowledge.frameworks import Framework, Knowledge
    from toolkit.inventory.knowledge.names import Names
    from toolkit.pins.authoring.imports import Imports
    from toolkit.pins.authoring.projects import Project
    from toolkit.pins.authoring.purpose import OldCode
    from toolkit.recipes.model import Base, Index

# Without a GPU framework any base with Python works; this one needs no registry.
_PLAIN = "debian-12"
_LOCAL = re.compile(r"(===?\s*[^\s,;+]+)\+[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed recipe: `base` is None if no base of the catalogue fits.

    `uses_gpu`: the base or a package is a GPU framework. `indexes` are those that the list names, `project` is what
    is installed from the user's own sources, `command` what a job runs, as far as the source says. `wheels` is the base
    with the wheels among `packages`, if those bring the framework. `prefer` are versions that the lock takes where it
    can, as in a recipe.
    """

    base: str | None
    packages: tuple[str, ...]
    findings: tuple[Finding, ...]
    uses_gpu: bool = False
    indexes: tuple[Index, ...] = ()
    project: Project | None = None
    command: tuple[str, ...] | None = None
    wheels: WheelBase | None = None
    prefer: tuple[str, ...] = ()


def propose_base(base: Base, frameworks: Knowledge, line: str | None = None) -> Proposal:
    """The empty recipe on a base; if wheels bring its framework, with them, in the version that `line` asks for."""
    if not isinstance(base, WheelBase):
        return Proposal(base.name, (), (), uses_gpu=base.framework is not None)
    framework = next(framework for framework in frameworks.frameworks if _has(base, framework))
    return Proposal(base.start, base.packages(framework, [line] if line else []), (), uses_gpu=True, wheels=base)


def propose_from_imports(
    found: Imports,
    known: Names,
    frameworks: Knowledge,
    bases: Mapping[str, Base],
    base: str | None = None,
    installed: Sequence[str] = (),
) -> Proposal:
    """The direct packages of code, without versions, since code does not name any.

    `base` is the one that the user chose; only what it brings is left out. `installed` are requirements that the
    code itself installs (a notebook's `%pip install`): they stay as they are.
    """
    findings = [
        Finding("unread-file", Severity.WARNING, f"{file} was skipped: {reason}")
        for file, reason in found.unread.items()
    ]
    findings += font_note(found.japanese, (*found.required, *found.optional))
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
                "If it is a package, add it with `ctk add` under its name on PyPI.",
            )
        )
    own = {_name(line): _without_local(line) for line in installed}
    optional = {known.distribution(module) for module in found.optional} - wanted.keys() - own.keys() - {None, ""}
    lines = [*own.values(), *(name for name in wanted if name not in own)]
    old = find_old_code(found, frameworks)
    fitting = {
        name: candidate for name, candidate in bases.items() if not old or name == base or _is_older(candidate, old)
    }
    if old and base is None and not any(_is_older(candidate, old) for candidate in bases.values()):
        return Proposal(None, tuple(sorted(lines)), (*_once(findings), _old_code(old, Severity.ERROR)))
    if old and base is not None and not _is_older(bases[base], old):
        findings.append(_old_code(old, Severity.WARNING))
    chooser = _Chooser(known, frameworks, fitting, used_for_data(found, known, frameworks))
    return chooser.propose(sorted(lines), _once(findings), base, sorted(map(str, optional)))


def propose_from_list(
    requirements: Sequence[str],
    known: Names,
    frameworks: Knowledge,
    bases: Mapping[str, Base],
    findings: Iterable[Finding] = (),
    base: str | None = None,
    *,
    dump: bool = False,
) -> Proposal:
    """The recipe of a list of requirements; their versions are the user's own and stay. `base` as for imports.

    In a `dump` each version is exact, whether or not it depends on that of the framework.
    """
    lines, renamed = known.as_meant(map(_without_local, requirements))
    return _Chooser(known, frameworks, bases, dump=dump).propose(lines, [*findings, *renamed], base)


def other_frameworks(
    lines: Iterable[str], base: Base, known: Names, frameworks: Knowledge, bases: Mapping[str, Base]
) -> tuple[Finding, ...]:
    """What `ctk new` would say of GPU frameworks among `lines` that `base` does not have; all of them are kept.

    Empty for a user's own image, whose content is not recorded.
    """
    if base.framework is None and base.bootstrap != Bootstrap.DEBOOTSTRAP:
        return ()
    proposal = propose_from_list(tuple(lines), known, frameworks, {**bases, base.name: base}, base=base.name)
    return tuple(finding for finding in proposal.findings if finding.code in ("second-framework", "framework-added"))


def gpu_framework(lines: Iterable[str], frameworks: Knowledge) -> str | None:
    """The first distribution among `lines` that is a GPU framework, and no variant without GPU code; None: none is."""
    for line in lines:
        framework = frameworks.framework_of(_name(line))
        if framework is not None and not framework.is_cpu_only(_name(line)):
            return _name(line)
    return None


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A framework that is wanted. `line` names it, "" if only companions do; `sole`: some compute with no other."""

    framework: Framework
    line: str
    sole: bool = True


@dataclass(frozen=True, slots=True)
class _Chooser:
    """What a choice is made from: the tables, the bases, and the frameworks that are used for data only.

    `dump`: the list is one of a whole environment.
    """

    known: Names
    frameworks: Knowledge
    bases: Mapping[str, Base]
    for_data: frozenset[str] = frozenset()
    dump: bool = False

    def propose(
        self, lines: list[str], findings: list[Finding], said: str | None, optional: Sequence[str] = ()
    ) -> Proposal:
        """The requested base, else the best one, and what to install into it."""
        # Optional imports choose the base only if nothing else does.
        requests = self._requests(lines) or [request for request in self._requests(optional) if request.line]
        listed = {_name(line) for line in lines}
        named = next((name for request in requests[:1] for name in request.framework.bases if name in listed), None)
        if said is None and named is not None and not any(base.framework == named for base in self.bases.values()):
            return Proposal(None, tuple(lines), (*findings, _no_base(named)))
        base = self.bases.get(said or self._best_base(requests, named))
        if base is None:
            return Proposal(None, tuple(lines), tuple(findings))
        ours = self._framework_in(base)
        packages = [line for line in lines if not self._brings(base, ours, line)]
        brought = [line for line in lines if line not in packages]
        replaced = [found for line in brought if (found := _other_version(base, line, self.frameworks, said))]
        findings += replaced
        if ours is not None and replaced:
            packages = [self._freed(ours, line, findings) for line in packages]
        if more := [line for line in optional if not self._brings(base, ours, line)]:
            message = f"used only if installed: {', '.join(more)}"
            findings.append(Finding("optional-import", Severity.INFO, message, "Add it with `ctk add`."))
        packages = [self._fed(ours, line, findings) for line in packages]
        for line in list(packages):
            framework = self.frameworks.framework_of(_name(line))
            if ours is not None and framework is not None and framework.is_cpu_only(_name(line)):
                continue
            if framework is None or (ours is not None and framework.beside_others):
                continue
            findings.append(_not_brought(line, framework, base, ours, kept=ours is None or said is not None))
            if ours is not None and said is None:
                packages.remove(line)
        uses_gpu = ours is not None or gpu_framework(packages, self.frameworks) is not None
        if isinstance(base, WheelBase) and ours is not None:
            with_wheels = (*base.packages(ours, brought), *packages)
            return Proposal(base.start, with_wheels, tuple(findings), uses_gpu, wheels=base)
        return Proposal(base.name, tuple(packages), tuple(findings), uses_gpu)

    def _fed(self, ours: Framework | None, line: str, findings: list[Finding]) -> str:
        """A framework that only feeds the base's, without its GPU part."""
        framework = self.frameworks.framework_of(_name(line))
        if framework is None or ours is None or framework.name not in self.for_data:
            return line
        data = self.known.data[framework.name]
        requirement = Requirement(line)
        if data.instead is None or requirement.url:
            return line
        requirement.name = data.instead
        message = (
            f"the code uses {framework.title} only to read data and computes with {ours.title}: {requirement}, "
            "which uses no GPU, is installed as well"
        )
        findings.append(Finding("framework-for-data", Severity.INFO, message))
        return str(requirement)

    def _freed(self, ours: Framework, line: str, findings: list[Finding]) -> str:
        """A companion whose exact version belongs to the version of the framework that was replaced, without it."""
        requirement = Requirement(line)
        exact = any(clause.operator in ("==", "===") for clause in requirement.specifier)
        if not exact or requirement.url or self.known.frameworks_behind(_name(line)) != (ours.name,):
            return line
        if self.dump and ours.welded_as(_name(line)) != "exact":
            return line  # its version may well be possible
        requirement.specifier = SpecifierSet()
        message = f"{line} belongs to the replaced version of {ours.title}: the lock chooses its version"
        findings.append(Finding("version-left-open", Severity.WARNING, message))
        return str(requirement)

    def _requests(self, lines: Iterable[str]) -> list[_Requirement]:
        """Each requested framework, the most important first."""
        found: dict[str, _Requirement] = {}
        by_name = {framework.name: framework for framework in self.frameworks.frameworks}
        alone: Counter[str] = Counter()
        for line in lines:
            framework = self.frameworks.framework_of(_name(line))
            if framework is not None:
                found[framework.name] = _Requirement(framework, line)
                continue
            behind = self.known.frameworks_behind(_name(line))
            alone.update(behind if len(behind) == 1 and not self.known.feeds(_name(line)) else ())
            for name in behind:
                if name not in found or not found[name].sole:
                    found[name] = _Requirement(by_name[name], "", sole=len(behind) == 1)
        # What is named itself counts for more than what a companion implies, and what computes for more than what is
        # used for data; of several the one with the most companions of its own. Those that fit next to any come last.
        order = list(by_name)
        return sorted(
            found.values(),
            key=lambda request: (
                request.framework.beside_others,
                self._feeds(request, alone),
                not request.line,
                not request.sole,
                -alone[request.framework.name],
                order.index(request.framework.name),
            ),
        )

    def _feeds(self, request: _Requirement, alone: Mapping[str, int]) -> bool:
        """Whether a framework is there for data: by how code uses it, by its variant, or by its only companions."""
        if request.line:
            return request.framework.name in self.for_data or request.framework.is_cpu_only(_name(request.line))
        return request.sole and not alone[request.framework.name]

    def _best_base(self, requests: Sequence[_Requirement], named: str | None) -> str:
        """The newest base of the most important framework that fits the requested version; else the plain one.

        `named` is what only some bases of the framework have: Chainer of CuPy's.
        """
        if not requests:
            return _PLAIN
        first = requests[0]
        having = [
            base
            for base in self.bases.values()
            if _has(base, first.framework)
            and not (isinstance(base, WheelBase) and named is None and base.framework in first.framework.bases)
        ]
        # NVIDIA's GPUs are meant, unless only bases for AMD's serve the machine.
        having = [base for base in having if base.rocm is None] or having
        having.sort(key=lambda base: (base.framework in first.framework.bases) != (named is not None))
        specifier = str(Requirement(first.line).specifier) if first.line else ""
        fitting = [base for base in having if base.framework_version and satisfies(base.framework_version, specifier)]
        return next((base.name for base in (*fitting, *having)), _PLAIN)

    def _framework_in(self, base: Base) -> Framework | None:
        return next((framework for framework in self.frameworks.frameworks if _has(base, framework)), None)

    def _brings(self, base: Base, ours: Framework | None, line: str) -> bool:
        """Whether a base brings a package itself: its framework, and the GPU libraries of that."""
        name = _name(line)
        if ours is None:
            return False
        if (framework := self.frameworks.framework_of(name)) is not None:
            return framework.name == ours.name
        is_library = matches(name, self.frameworks.nvidia) or matches(name, ours.libraries)
        return is_library or name == canonicalize_name(base.framework or "")


def _is_older(base: Base, code: OldCode) -> bool:
    """Whether a base has the framework that old code needs, in a version that still has these parts."""
    version = base.framework_version
    is_its = code.framework.is_variant(canonicalize_name(base.framework or ""))
    return is_its and bool(version) and version_of(version) < version_of(code.old.before)


def _old_code(code: OldCode, severity: Severity) -> Finding:
    newer = f"{code.framework.title} {code.old.before}"
    message = f"{code.place}: {code.part} is part of {code.old.series} and was removed in {newer}"
    return Finding("old-framework-code", severity, message, code.old.fix)


def _has(base: Base, framework: Framework) -> bool:
    name = canonicalize_name(base.framework or "")
    return framework.is_variant(name) or name in framework.bases


def _other_version(base: Base, line: str, frameworks: Knowledge, said: str | None) -> Finding | None:
    """What replaces a version that the base does not have, and why."""
    specifier = str(Requirement(line).specifier)
    if frameworks.framework_of(_name(line)) is None or base.framework_version is None:
        return None
    if satisfies(base.framework_version, specifier):
        return None
    why = f"the base {base.name} was requested" if said else "no base in `ctk bases` has that version from pip"
    message = f"{line} is replaced by version {base.framework_version} of the base {base.name}: {why}"
    fix = "To keep the version, add a base that has it to ./defs/bases.toml, then run `ctk new` again with --base."
    return Finding("other-version", Severity.WARNING, message, fix)


def _not_brought(line: str, framework: Framework, base: Base, ours: Framework | None, *, kept: bool) -> Finding:
    """A framework that is wanted and that the base does not have."""
    if ours is None:
        message = f"the base {base.name} does not include {framework.title}: {line} is installed into it"
        return Finding(
            "framework-added", Severity.WARNING, message, "`ctk bases` lists the bases that include a framework."
        )
    message = (
        f"{line} is a second GPU framework, and {base.name} is for {ours.title}; "
        f"it is {'kept anyway' if kept else 'left out'}"
    )
    return Finding("second-framework", Severity.WARNING, message, "Create one recipe per framework.")


def _no_base(named: str) -> Finding:
    """No base serves the machine and has what the code needs beside its framework."""
    fix = f"`ctk new` with --framework {named} instead of --from says why."
    return Finding("no-base-fits", Severity.ERROR, f"no base for {named} serves this machine", fix)


def _without_local(line: str) -> str:
    """`torch==2.6.0+cu124` without `+cu124`: no index has it, and the base decides about CUDA."""
    return line if Requirement(line).url else _LOCAL.sub(r"\1", line)


def _name(line: str) -> str:
    return canonicalize_name(Requirement(line).name)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each module, however many of its parts are imported."""
    found: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        found.setdefault((finding.code, finding.message.partition(": ")[2] or finding.message), finding)
    return list(found.values())
