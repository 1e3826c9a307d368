"""Lists of packages that people have already: `requirements.txt` and conda's `environment.yml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from toolkit.pins.names import names
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from pathlib import Path

# From here on a list of exact versions was hardly written by hand.
_FREEZE_LINES = 12
_FREEZE_SHARE = 0.9
_CONDA = re.compile(r"(?:[A-Za-z0-9_.-]+::)?([A-Za-z0-9_.-]+)\s*(.*)")


@dataclass(frozen=True, slots=True)
class WishList:
    """Requirements of a file in its order. `frozen` says that it is a dump of an environment, not a choice.

    `left_out` are lines that are no packages for pip to resolve, each with the reason.
    """

    requirements: tuple[str, ...]
    frozen: bool
    left_out: tuple[tuple[str, str], ...] = ()

    def findings(self) -> tuple[Finding, ...]:
        """What a person should know of the lines that were left out."""
        return tuple(
            Finding("left-out", Severity.INFO, f"left out: {line} ({reason})") for line, reason in self.left_out
        )


def read_requirements(path: Path) -> WishList:
    """Read a `requirements.txt`, with those that it includes. Raises WrongInput where it cannot be read."""
    found: list[str] = []
    left_out: list[tuple[str, str]] = []
    _read_lines(path, found, left_out, seen=set())
    return WishList(tuple(dict.fromkeys(found)), _is_freeze(found, left_out), tuple(left_out))


def _read_lines(path: Path, found: list[str], left_out: list[tuple[str, str]], seen: set[Path]) -> None:
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    for line in re.sub(r"\\\n", " ", _text(path)).splitlines():
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        include = re.fullmatch(r"(?:-r|--requirement)[ =]?(\S+)", text)
        if include:
            _read_lines(path.parent / include[1], found, left_out, seen)
        elif text.startswith(("-c ", "--constraint")):
            left_out.append((text, "a constraint: the lock chooses versions"))
        elif text.startswith("-"):
            left_out.append((text, "an option of pip"))
        else:
            _add(re.split(r"\s--hash", text)[0].strip(), found, left_out)


def _add(text: str, found: list[str], left_out: list[tuple[str, str]]) -> None:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        left_out.append((text, "not the name of a package"))
        return
    if requirement.url and not requirement.url.startswith(("https://", "http://")):
        # `pip freeze` writes where a wheel once lay. On another machine that says nothing.
        left_out.append((text, "a place of another machine, or a repository without a hash"))
        return
    found.append(text)


def read_conda_environment(path: Path) -> WishList:
    """Read an `environment.yml`, conda's names turned into PyPI's. Raises WrongInput where it is none."""
    import yaml

    try:
        content = yaml.safe_load(_text(path))
    except yaml.YAMLError as error:
        raise WrongInput(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict) or not isinstance(content.get("dependencies"), list):
        raise WrongInput(f"{path} has no list of `dependencies`: it is no environment of conda")
    found: list[str] = []
    left_out: list[tuple[str, str]] = []
    builds = 0
    for entry in content["dependencies"]:
        if isinstance(entry, dict):
            for line in _pip_lines(entry):
                _add(line, found, left_out)
            continue
        requirement, has_build = _from_conda(str(entry))
        builds += has_build
        if requirement is None:
            left_out.append((str(entry), "the base brings it, or it is no Python package"))
        else:
            _add(requirement, found, left_out)
    frozen = builds >= _FREEZE_LINES or _is_freeze(found, left_out)
    return WishList(tuple(dict.fromkeys(found)), frozen, tuple(left_out))


def _pip_lines(entry: dict[Any, Any]) -> list[str]:
    lines = entry.get("pip")
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _from_conda(text: str) -> tuple[str | None, bool]:
    """A match specification of conda as a requirement, and whether it names a build (`numpy=1.21.2=py39h20f2e39_0`).

    `=1.21` means any 1.21, `==1.21` and `=1.21=build` mean this one.
    """
    match = _CONDA.fullmatch(text.strip())
    if match is None:
        return None, False
    name = names().from_conda(match[1])
    if not name or match[1].startswith(("_", "lib")):
        return None, False
    rest = match[2].strip()
    if rest.startswith("=") and "=" in rest.lstrip("="):
        version, _, _ = rest.lstrip("=").partition("=")
        return f"{name}=={version}", True
    if rest.startswith("=") and not rest.startswith("=="):
        rest = f"=={rest[1:]}" if rest.endswith("*") else f"=={rest[1:]}.*"
    return f"{name}{f'=={rest}' if rest[:1].isdigit() else rest}", False


def _is_freeze(found: list[str], left_out: list[tuple[str, str]]) -> bool:
    pinned = sum(1 for line in found if re.search(r"===?[^=*,]+$", line.partition(";")[0].strip()))
    placed = sum(1 for line, _ in left_out if " @ file:" in line)
    lines = len(found) + placed
    return placed > 0 or (lines >= _FREEZE_LINES and pinned >= _FREEZE_SHARE * lines)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        # What PowerShell's `>` writes.
        return path.read_text(encoding="utf-16", errors="replace")
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
