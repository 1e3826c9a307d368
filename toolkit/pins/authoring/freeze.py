"""Reduce a full environment dump (`pip freeze`) to its direct packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.lock.model import RECIPE
from toolkit.pins.resolver.question import NotOnIndex, Question
from toolkit.pins.resolver.resolve import who_requires_whom
from toolkit.support.errors import ProgramFailed
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.pins.index.uv import Uv
    from toolkit.recipes.model import Index

_PYTHON = "3.11"  # only used to find dependencies; the base of the recipe decides the Python version
_MAX_UNKNOWN = 5
# pip freeze omits these, conda does not; a recipe does not need them.
_TOOLS = frozenset({"pip", "setuptools", "wheel", "certifi", "distribute", "pkg-resources"})


def direct_requirements(
    uv: Uv, requirements: Sequence[str], indexes: tuple[Index, ...] = ()
) -> tuple[tuple[str, ...], list[Finding]]:
    """The packages of a frozen list that no other one requires, and the findings for the user.

    The dependencies are those of the newest releases: they rarely change, and old releases may be gone.
    """
    by_name: dict[str, str] = {canonicalize_name(Requirement(line).name): line for line in requirements}
    names: list[str] = [name for name in by_name if name not in _TOOLS]
    findings = []
    for _ in range(_MAX_UNKNOWN):
        try:
            edges = who_requires_whom(
                uv, Question(PythonTarget(_PYTHON, {}), tuple(sorted(names)), indexes=indexes), dict.fromkeys(names, "")
            )
        except NotOnIndex as error:
            if error.name not in names:  # a requirement of one of them
                break
            names.remove(error.name)
            findings.append(
                Finding("not-on-index", Severity.WARNING, f"{error.name} is not on the index, so it was left out")
            )
            continue
        except ProgramFailed:
            break
        direct = [by_name[name] for name in names if edges.get(name, set()) <= {RECIPE} or _chooses_base(name)]
        message = (
            f"the list is a full environment dump: {len(by_name) - len(direct)} of its {len(by_name)} packages are "
            "dependencies of the others, and the lock chooses them"
        )
        return tuple(direct), [Finding("freeze", Severity.INFO, message), *findings]
    message = "the list is a full environment dump, and its direct packages could not be identified"
    fix = "To list only what your code imports, run `ctk new NAME --from train.py`."
    return tuple(by_name[name] for name in names), [Finding("freeze", Severity.WARNING, message, fix), *findings]


def _chooses_base(name: str) -> bool:
    """A framework chooses the base by its version, even where torchvision requires it too."""
    framework = knowledge().framework_of(name)
    return framework is not None and not framework.beside_others
