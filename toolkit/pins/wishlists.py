"""Lists of packages that people have already: `requirements.txt` and conda's `environment.yml`."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from toolkit.pins.names import names
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from packaging.markers import Marker

# From here on a list of exact versions was hardly written by hand.
_FREEZE_LINES = 12
_FREEZE_SHARE = 0.9
_INCLUDE = re.compile(r"(?:-r|--requirement)\s*=?\s*(\S+)")
_CONDA = re.compile(r"(?:[A-Za-z0-9_.-]+::)?([A-Za-z0-9_.-]+)\s*(.*)")
# A build stands after a version, behind `=` or a space: `=1.21.2=py39h20f2e39_0`, `* *cuda*`, `>=2.0=*cuda*`.
_CONDA_BUILD = re.compile(r"(.*[\w*])(?:=|\s+)([^\s=<>!~,|]+)")
# What an image can be: Linux on either kind of machine, with any Python 3 that a base may have.
_IMAGES = [
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": machine}
    | {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.0"}
    for machine in ("x86_64", "aarch64")
    for minor in range(5, 16)
]


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
    _read_file(path, found, left_out, seen=set())
    return WishList(tuple(dict.fromkeys(found)), _is_freeze(found, left_out), tuple(left_out))


def _read_file(path: Path, found: list[str], left_out: list[tuple[str, str]], seen: set[Path]) -> None:
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    _read_lines(_joined(_text(path)), path.parent, found, left_out, seen)


def _joined(text: str) -> Iterator[str]:
    """The lines as pip reads them: one that ends in a backslash goes on in the next, but a comment never does."""
    begun = ""
    for line in text.splitlines():
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            begun += f"{line[:-1]} "
            continue
        yield begun + line
        begun = ""
    yield begun


def _read_lines(
    lines: Iterable[str], folder: Path, found: list[str], left_out: list[tuple[str, str]], seen: set[Path]
) -> None:
    """Take the lines of a list that lies in `folder`, for that is what an `-r` in it starts from."""
    for line in lines:
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        if include := _INCLUDE.fullmatch(text):
            _read_file(folder / include[1], found, left_out, seen)
        elif re.match(r"-c\s|--constraint", text):
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
    if requirement.marker is not None and not _may_hold(requirement.marker):
        left_out.append((text, "its condition holds in no image"))
        return
    found.append(text)


def _may_hold(marker: Marker) -> bool:
    return any(marker.evaluate({**image, "extra": ""}) for image in _IMAGES)


def read_conda_environment(path: Path) -> WishList:
    """Read an `environment.yml`, conda's names turned into PyPI's. Raises WrongInput where it is none."""
    import yaml

    try:
        content = yaml.safe_load(_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WrongInput(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict) or not isinstance(content.get("dependencies"), list):
        raise WrongInput(f"{path} has no list of `dependencies`: it is no environment of conda")
    found: list[str] = []
    left_out: list[tuple[str, str]] = []
    builds = 0
    for entry in content["dependencies"]:
        if isinstance(entry, dict):
            _read_lines(_pip_lines(entry), path.parent, found, left_out, seen=set())
            continue
        requirement, has_build = _from_conda(str(entry))
        builds += has_build
        if requirement is None:
            left_out.append((str(entry), "the base brings it, or it is no Python package: `apt` is for those"))
        else:
            _add(requirement, found, left_out)
    frozen = builds >= _FREEZE_LINES or _is_freeze(found, left_out)
    return WishList(tuple(dict.fromkeys(found)), frozen, tuple(left_out))


def _pip_lines(entry: dict[Any, Any]) -> list[str]:
    lines = entry.get("pip")
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _from_conda(text: str) -> tuple[str | None, bool]:
    """A match specification of conda as a requirement, and whether it names a build (`numpy=1.21.2=py39h20f2e39_0`)."""
    match = _CONDA.fullmatch(text.strip())
    name = names().from_conda(match[1]) if match else ""
    if match is None or not name:
        return None, False
    built = _CONDA_BUILD.fullmatch(match[2].strip())
    return f"{name}{_specifier(built[1] if built else match[2].strip(), exact=bool(built))}", bool(built)


def _specifier(version: str, *, exact: bool) -> str:
    """conda's version as pip writes it: `=1.21` means any 1.21, `==1.21` and, with a build, `=1.21` mean this one."""
    if version.lstrip("= ") in ("", "*"):
        return ""
    version = re.sub(r"\.?\*$", ".*", version)
    if version.startswith("=") and not version.startswith("=="):
        any_patch = "" if exact or version.endswith("*") else ".*"
        return f"={version}{any_patch}"
    return f"=={version}" if version[0].isdigit() else version


def _is_freeze(found: list[str], left_out: list[tuple[str, str]]) -> bool:
    pinned = sum(1 for line in found if re.search(r"===?[^=*,]+$", line.partition(";")[0].strip()))
    placed = sum(1 for line, _ in left_out if " @ file:" in line)
    lines = len(found) + placed
    return placed > 0 or (lines >= _FREEZE_LINES and pinned >= _FREEZE_SHARE * lines)


def _text(path: Path) -> str:
    """A file's text. Only names and versions count, so letters of another encoding, in a comment, may be lost."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    # What PowerShell's `>` writes.
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
