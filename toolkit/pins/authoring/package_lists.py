"""Existing lists of packages: `requirements.txt`, and what pip and conda print of an environment."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from toolkit.pins.authoring.dumps import listed_requirements, pinned_file
from toolkit.recipes.indexes import index_of_option
from toolkit.recipes.repositories import is_repository, why_unlockable, with_name
from toolkit.recipes.requirements import how_to_write
from toolkit.support.errors import WrongInput
from toolkit.support.files import read_small
from toolkit.support.findings import Finding, Severity
from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from packaging.markers import Marker

    from toolkit.recipes.model import Index

# A list with more exact versions than this was probably not written by hand.
_FREEZE_LINES = 12
_FREEZE_SHARE = 0.9
_INCLUDE = re.compile(r"(?:-r|--requirement)\s*=?\s*(\S+)")
_INDEX = re.compile(r"(-i|--index-url|--extra-index-url|-f|--find-links)(?:\s+|\s*=\s*)(\S+)")
# Why a line is left out; the recipe then lacks a package that the list has.
_NAMELESS = "a repository without a package name: write NAME @ git+https://SERVER/PATH@COMMIT"
_NO_NAME = "not a package name"
_OTHER_MACHINE = "a file on another machine"
_PROJECT = "a project on this machine: `ctk new --from pyproject.toml` installs it"
_LOST = (_NAMELESS, _NO_NAME, _OTHER_MACHINE)
_MAX_REASONS = 5
_HASH = re.compile(r"\s--hash(?:\s|=).*")
# The environments an image can have: Linux on either architecture, with any Python 3 of a base.
_IMAGES = [
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": machine}
    | {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.0"}
    for machine in ("x86_64", "aarch64")
    for minor in range(5, 16)
]


@dataclass(frozen=True, slots=True)
class PackageList:
    """Requirements of a file in its order. `frozen` says that it is a dump of an environment, not a choice.

    `left_out` are lines that are no packages for pip to resolve, each with the reason; `indexes` are those that the
    file names in addition to PyPI; `notes` are further information for the user.
    """

    requirements: tuple[str, ...]
    frozen: bool
    left_out: tuple[tuple[str, str], ...] = ()
    indexes: tuple[Index, ...] = ()
    notes: tuple[Finding, ...] = ()

    def findings(self) -> tuple[Finding, ...]:
        """What a user should know of the lines that were left out, and of the others."""
        left_out = [
            Finding("left-out", Severity.WARNING if why in _LOST else Severity.INFO, f"left out: {line} ({why})")
            for line, why in self.left_out
        ]
        return (*left_out, *self.notes)


def refuse_empty(found: PackageList, path: Path) -> None:
    """Raise WrongInput if a file has no package that a recipe can install, with the reason of each line."""
    if found.requirements:
        return
    findings = [finding for finding in found.findings() if finding.code == "left-out"]
    lines = [
        f"{path} has no package that a recipe can install",
        *(finding.message for finding in findings[:_MAX_REASONS]),
    ]
    if len(findings) > _MAX_REASONS:
        lines.append(f"and {len(findings) - _MAX_REASONS} more lines")
    raise WrongInput(
        "\n".join(lines),
        fix=next(
            filter(None, (finding.fix for finding in findings)),
            "List one pip requirement per line, such as numpy>=1.26.",
        ),
        code="nothing-usable",
    )


def read_requirements(path: Path) -> PackageList:
    """Read a `requirements.txt`, with those that it includes. Raises WrongInput if it cannot be read."""
    lines = Lines()
    lines.read_file(path)
    return lines.package_list()


@dataclass
class Lines:
    """What the lines read so far ask for. `is_dump`: one of them, or their form, is of a dump of an environment."""

    found: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    unversioned: list[str] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    is_dump: bool = False
    _seen: set[Path] = field(default_factory=set)

    def read_file(self, path: Path) -> None:
        """Take a file's lines, once. Raises WrongInput if it cannot be read."""
        if path.resolve() in self._seen:
            return
        self._seen.add(path.resolve())
        text = read_text(path)
        listed = listed_requirements(text)
        if listed is None:
            self.read(_joined(text), path.parent)
            return
        self.is_dump = True
        requirements, foreign = listed
        for line in requirements:
            self.add(line)
        for line in foreign:
            is_project = re.search(r"\s/\S+$", line)
            self.left_out.append((line, _PROJECT if is_project else "not a Python package on PyPI (use `apt`)"))

    def read(self, lines: Iterable[str], directory: Path) -> None:
        """Read the lines of a list in `directory`, to which an `-r` in it is relative."""
        for line in lines:
            text = re.sub(r"(^|\s)#.*", "", line).strip()
            if not text:
                continue
            if include := _INCLUDE.fullmatch(text):
                self.read_file(directory / include[1])
            elif index := _INDEX.fullmatch(text):
                self._add_index(index[1], index[2])
            elif re.match(r"-c\s|--constraint", text):
                self.left_out.append((text, "a constraint: the lock chooses versions"))
            elif is_repository(checkout := re.sub(r"^(-e|--editable)[\s=]+", "", text)):
                self.add(checkout)  # `pip freeze` says so of an editable one
            elif re.match(r"(-e|--editable)[\s=]", text) or text in (".", "./"):
                self.left_out.append((text, _PROJECT))
            elif text.startswith("-"):
                self.left_out.append((text, "a pip option"))
            else:
                self.add(_HASH.sub("", text).strip())

    def add(self, text: str) -> None:
        """Take one requirement."""
        text = with_name(text)
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            meant = None if is_repository(text) else how_to_write(text)
            if meant is not None:
                self.notes.append(
                    Finding("left-out", Severity.WARNING, f"left out: {redact(text)} ({_NO_NAME})", meant)
                )
            else:
                self.left_out.append((text, _NAMELESS if is_repository(text) else _NO_NAME))
            return
        if requirement.marker is not None and not _may_hold(requirement.marker):
            self.left_out.append((text, "its environment marker never applies in an image"))
            return
        if (requirement.url or "").startswith("file:"):
            self._add_from_file(text, requirement)
        elif is_repository(requirement.url) and (problem := why_unlockable(requirement.url or "")):
            message = f"left out: {redact(text)}: it {problem[0]}"
            self.notes.append(Finding("left-out", Severity.WARNING, message, problem[1]))
        elif requirement.url and not requirement.url.startswith(("https://", "http://", "git+")):
            self.left_out.append((text, _OTHER_MACHINE))
        else:
            self.found.append(text)

    def _add_from_file(self, text: str, requirement: Requirement) -> None:
        """`pip freeze` in an environment of conda writes where each package was built."""
        self.is_dump = True
        line = pinned_file(requirement.name, requirement.url or "")
        if line is None:
            self.left_out.append((text, _OTHER_MACHINE))
            return
        self.found.append(line)
        if "==" not in line:
            self.unversioned.append(requirement.name)

    def _add_index(self, option: str, url: str) -> None:
        index, finding = index_of_option(option, url)
        if index is None:
            self.left_out.append((f"{option} {url}", "not an http or https URL"))
        elif index.url not in [known.url for known in self.indexes]:
            taken = sum(1 for known in self.indexes if re.fullmatch(rf"{index.name}(-\d+)?", known.name))
            self.indexes.append(replace(index, name=f"{index.name}-{taken + 1}") if taken else index)
        if finding:
            self.notes.append(finding)

    def package_list(self) -> PackageList:
        """The result as one value."""
        pinned = sum(1 for line in self.found if re.search(r"===?[^=*,]+$", line.partition(";")[0].strip()))
        is_long = len(self.found) >= _FREEZE_LINES and pinned >= _FREEZE_SHARE * len(self.found)
        notes = list(self.notes)
        if self.unversioned:
            message = f"the file has no versions for these packages: {', '.join(self.unversioned)}"
            fix = "Write them with `pip list --format=freeze > requirements.txt`: `pip freeze` omits those of conda."
            notes.append(Finding("no-version", Severity.WARNING, message, fix))
        return PackageList(
            tuple(dict.fromkeys(self.found)),
            self.is_dump or is_long,
            tuple(self.left_out),
            tuple(self.indexes),
            tuple(notes),
        )


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


def _may_hold(marker: Marker) -> bool:
    return any(marker.evaluate({**image, "extra": ""}) for image in _IMAGES)


def read_text(path: Path) -> str:
    """A file's text. Only names and versions count, so letters of another encoding, in a comment, may be lost.

    Raises WrongInput if it cannot be read, is not a regular file, or is larger than a list that somebody wrote.
    """
    try:
        content = read_small(path)
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    # What PowerShell's `>` writes.
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
