"""Reduce a full environment dump (`pip freeze`) to its direct packages, and its versions to preferences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.lock.model import RECIPE
from toolkit.pins.resolver.dependents import closure, who_requires_whom
from toolkit.pins.resolver.question import NotOnIndex, Question
from toolkit.recipes.requirements import exact_version
from toolkit.support.errors import ProgramFailed
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.pins.authoring.proposal import Proposal
    from toolkit.pins.index.uv import Uv
    from toolkit.recipes.model import Index

_PYTHON = "3.11"  # only used to find dependencies; the base of the recipe decides the Python version
_MAX_UNKNOWN = 5
# What makes an environment, not what runs in it: a base has its own.
_TOOLS = frozenset({"pip", "setuptools", "wheel", "distribute", "pkg-resources"})
# conda lists it as a package of its own; whoever needs it requires it.
_NEVER_DIRECT = frozenset({"certifi"})


@dataclass(frozen=True, slots=True)
class Reduced:
    """A dump as a recipe has it: `direct` lines, `others`, which they require, and the findings for the user.

    `others` lacks what only GPU frameworks require: that comes with a base. `listed` are all lines, but for tools and
    for what no index has.
    """

    direct: tuple[str, ...]
    others: tuple[str, ...]
    listed: tuple[str, ...]
    findings: tuple[Finding, ...]


def reduce_dump(uv: Uv, requirements: Sequence[str], indexes: tuple[Index, ...] = ()) -> Reduced:
    """Divide a dump into the packages that no other one requires, and the rest."""
    by_name: dict[str, list[str]] = {}
    for line in dict.fromkeys(requirements):
        by_name.setdefault(canonicalize_name(Requirement(line).name), []).append(line)
    findings = []
    if tools := [line for name in sorted(_TOOLS & by_name.keys()) for line in by_name.pop(name)]:
        message = f"left out: {', '.join(tools)} (tools of the environment: the base has its own)"
        findings.append(Finding("left-out", Severity.INFO, message))
    given = {name for name, lines in by_name.items() if any(Requirement(line).url for line in lines)}
    candidates = [name for name in by_name if name not in _NEVER_DIRECT | given]
    pins = [lines[0] for lines in by_name.values() if len(lines) == 1 and exact_version(lines[0])]
    edges = _edges(uv, candidates, pins, indexes, findings)
    if edges is None:
        message = "the list is a full environment dump, and its direct packages could not be identified"
        fix = "To list only what your code imports, run `ctk new NAME --from train.py`."
        direct = [*candidates]
        findings.insert(0, Finding("freeze", Severity.WARNING, message, fix))
    else:
        direct = [name for name in candidates if edges.get(name, set()) <= {RECIPE} or _chooses_base(name)]
        required = len(by_name) - len(direct) - len(given)
        what = f"{required} of its {len(by_name)} packages are dependencies of the others"
        message = f"the list is a full environment dump: {what}"
        findings.insert(0, Finding("freeze", Severity.INFO, message))
    missing = by_name.keys() - {*candidates, *_NEVER_DIRECT, *given}
    direct += sorted(given)  # whatever has an address was chosen
    others = closure(edges or {}, (name for name in direct if not _chooses_base(name))) - {*direct} - missing
    return Reduced(
        tuple(line for name in direct for line in by_name[name]),
        tuple(line for name, lines in by_name.items() if name in others for line in lines),
        tuple(line for name, lines in by_name.items() if name not in missing for line in lines),
        tuple(findings),
    )


def _edges(
    uv: Uv, candidates: list[str], pins: Sequence[str], indexes: tuple[Index, ...], findings: list[Finding]
) -> dict[str, set[str]] | None:
    """Who requires whom: by the versions of the list where uv can take them, else by newer ones.

    Packages that no index has are removed from `candidates`. None: it could not be determined.
    """
    prefer = pins
    for _ in range(_MAX_UNKNOWN):
        question = Question(PythonTarget(_PYTHON, {}), tuple(sorted(candidates)), indexes=indexes)
        try:
            return who_requires_whom(uv, question, dict.fromkeys(candidates, ""), prefer)
        except NotOnIndex as error:
            if error.name not in candidates:  # a requirement of one of them
                return None
            candidates.remove(error.name)
            message = f"{error.name} is not on the index, so it was left out"
            findings.append(Finding("not-on-index", Severity.WARNING, message))
        except ProgramFailed:
            if not prefer:
                return None
            prefer = ()  # an old release may be one that cannot be read on this host
    return None


def preferring(proposal: Proposal, listed: Iterable[str], *, keep_versions: bool = False) -> Proposal:
    """A recipe whose lock takes the versions of a list where it can; its own lines need not have them.

    With `keep_versions`, they stay in the lines. A GPU framework keeps its version in any case: whoever wants another
    one wants another base.
    """
    preferred: dict[str, None] = {}
    meant, _ = names().as_meant(listed)
    for line in meant:
        requirement, version = Requirement(line), exact_version(line)
        name = canonicalize_name(requirement.name)
        if version is not None:
            marker = f" ; {requirement.marker}" if requirement.marker else ""
            preferred[f"{name}=={version.partition('+')[0]}{marker}"] = None
    if not preferred:
        return proposal
    packages = count(len(preferred), "package")
    message = f"the lock takes the versions of {packages} of the list where the base allows"
    fix: str | None = (
        "`ctk lock` shows where it cannot. They are in the recipe, [lock] prefer; --keep-versions makes requirements."
    )
    if keep_versions:
        message, fix = f"the versions of {packages} of the list are requirements: the lock takes exactly these", None
    return replace(
        proposal,
        packages=proposal.packages if keep_versions else tuple(map(_open, proposal.packages)),
        prefer=tuple(sorted(preferred)),
        findings=(*proposal.findings, Finding("versions-preferred", Severity.INFO, message, fix)),
    )


def _open(line: str) -> str:
    """A requirement without its exact version."""
    requirement = Requirement(line)
    if exact_version(line) is None or knowledge().framework_of(canonicalize_name(requirement.name)) is not None:
        return line
    requirement.specifier = SpecifierSet()
    return str(requirement)


def _chooses_base(name: str) -> bool:
    """A framework chooses the base by its version, even where torchvision requires it too."""
    framework = knowledge().framework_of(name)
    return framework is not None and not framework.beside_others
