"""From imports or a list of packages to a recipe: which base, which direct packages, and what a person must decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.inventory.frameworks import satisfies
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolkit.inventory.frameworks import Framework, Knowledge
    from toolkit.pins.imports import Imports
    from toolkit.pins.names import Names
    from toolkit.recipes.model import Base

# Without a GPU framework any base with a Python will do; this one needs no registry.
_PLAIN = "debian-12"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A recipe as it could be: `base` is None where the catalogue has none that fits."""

    base: str | None
    packages: tuple[str, ...]
    findings: tuple[Finding, ...]


def propose_from_imports(found: Imports, known: Names, frameworks: Knowledge, bases: Mapping[str, Base]) -> Proposal:
    """The direct packages of code, without versions: nothing says which, so none is invented."""
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
                f"{where}: {module.partition('.')[0]} {said}",
                "If it is a package, `ctk add` it by the name that pip takes.",
            )
        )
    optional = {known.distribution(module) for module in found.optional} - wanted.keys() - {None, ""}
    if optional:
        listed = ", ".join(sorted(str(one) for one in optional))
        findings.append(
            Finding("optional-import", Severity.INFO, f"used only if it is there: {listed}", "`ctk add` it.")
        )
    return _propose(sorted(wanted), _once(findings), known, frameworks, bases)


def propose_from_list(
    requirements: Sequence[str],
    known: Names,
    frameworks: Knowledge,
    bases: Mapping[str, Base],
    findings: Iterable[Finding] = (),
) -> Proposal:
    """The recipe of a list of requirements; their versions are the person's own and stay."""
    return _propose(list(requirements), list(findings), known, frameworks, bases)


def _propose(
    requirements: list[str],
    findings: list[Finding],
    known: Names,
    frameworks: Knowledge,
    bases: Mapping[str, Base],
) -> Proposal:
    present = _framework_lines(requirements, known, frameworks)
    if not present:
        if _PLAIN not in bases:
            return Proposal(None, tuple(requirements), tuple(findings))
        return Proposal(_PLAIN, tuple(requirements), tuple(findings))
    chosen, line = next(iter(present.items()))
    framework = next(one for one in frameworks.frameworks if one.name == chosen)
    base, more = _choose_base(framework, line, bases)
    findings += more
    for other, other_line in list(present.items())[1:]:
        if other != "onnxruntime" and other_line:
            message = (
                f"{other_line or other} is another GPU framework: one image holds one, and this one is for {chosen}"
            )
            findings.append(Finding("second-framework", Severity.WARNING, message, "Make a recipe for each of them."))
    packages = [one for one in requirements if not _brought(one, framework, present, frameworks)]
    return Proposal(base, tuple(packages), tuple(findings))


def _framework_lines(requirements: Iterable[str], known: Names, frameworks: Knowledge) -> dict[str, str]:
    """Each framework that is wanted, with the line that says so ("" where only a companion does), weightiest first."""
    found: dict[str, str] = {}
    for line in requirements:
        name = canonicalize_name(Requirement(line).name)
        framework = frameworks.framework_of(name)
        if framework is not None:
            found[framework.name] = line
        elif (behind := known.framework_behind(name)) is not None:
            found.setdefault(behind, "")
    order = [one.name for one in frameworks.frameworks]
    # What is named itself counts for more than what a companion implies (Keras 3 also runs over torch and JAX).
    return dict(sorted(found.items(), key=lambda item: (not item[1], item[0] == "onnxruntime", order.index(item[0]))))


def _choose_base(framework: Framework, line: str, bases: Mapping[str, Base]) -> tuple[str | None, list[Finding]]:
    """The newest base of a framework, of those that fit the version asked for."""
    ours = [base for base in bases.values() if base.framework and _same(framework, canonicalize_name(base.framework))]
    ours.sort(key=lambda base: _version(base.framework_version), reverse=True)
    specifier = str(Requirement(line).specifier) if line else ""
    fitting = [base for base in ours if base.framework_version and satisfies(base.framework_version, specifier)]
    if fitting:
        return fitting[0].name, []
    if not ours:
        message = f"no base of the catalogue has {framework.title}"
        return None, [Finding("no-base", Severity.WARNING, message, "Say which: --base docker://IMAGE:TAG.")]
    listed = ", ".join(f"{base.name} has {base.framework_version}" for base in ours)
    message = f"no base of the catalogue has {line}; {listed}"
    return ours[0].name, [Finding("other-version", Severity.WARNING, message, "--base names another image.")]


def _same(framework: Framework, distribution: str) -> bool:
    # Chainer computes with CuPy: its images are the ones for both.
    return framework.is_variant(distribution) or (framework.name == "cupy" and distribution == "chainer")


def _brought(line: str, framework: Framework, present: Mapping[str, str], frameworks: Knowledge) -> bool:
    """Whether the base brings a package itself, or no image of this framework may hold it."""
    name = canonicalize_name(Requirement(line).name)
    other = frameworks.framework_of(name)
    if other is not None:
        return other.name != "onnxruntime" or framework.name == "onnxruntime"
    return frameworks.is_gpu_library(name) or (name == "chainer" and framework.name == "cupy" and "cupy" in present)


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
