"""A user's project: the dependencies in `pyproject.toml` or `setup.cfg`, and how it is installed itself."""

from __future__ import annotations

import configparser
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name

from toolkit.pins.authoring.package_lists import Lines, PackageList, read_text
from toolkit.support.errors import WrongInput
from toolkit.support.text import did_you_mean
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# The directory of a project's sources in an image.
_SOURCES = "/usr/src"
# What a build backend may read in addition to the code (PEP 621 `readme` and `license-files`; setuptools' own files).
_BESIDE = ("pyproject.toml", "setup.cfg", "setup.py", "MANIFEST.in", "README*", "LICEN[CS]E*", "COPYING*", "VERSION*")
_VERSION_FROM_GIT = ("setuptools-scm", "hatch-vcs")


@dataclass(frozen=True, slots=True)
class Project:
    """A project that is installed into the image itself. `paths` are its files, relative to its directory."""

    name: str
    paths: tuple[str, ...]
    requires_python: str | None = None
    version_from_git: bool = False

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """(path in the project, path in the image) of what `[[files]]` copies."""
        return tuple((path, f"{_SOURCES}/{self.name}/{path}") for path in self.paths)

    @property
    def post(self) -> str:
        """The script that installs it: its dependencies are there already, as the lock has them."""
        pretend = "SETUPTOOLS_SCM_PRETEND_VERSION=0 " if self.version_from_git else ""
        return f"{pretend}python3 -m pip install --no-deps {shlex.quote(f'{_SOURCES}/{self.name}')}"


def read_pyproject(path: Path, extras: Sequence[str]) -> tuple[PackageList, Project | None]:
    """Read `[project]` (PEP 621), with the dependencies of `extras`. Raises WrongInput for a file of another form."""
    file = read_toml(path)
    tools = file.get(file.content, "tool", dict) or {}
    project = file.get(file.content, "project", dict)
    if project is None:
        raise _no_project(path, tools)
    dynamic = file.get_texts(project, "dynamic", "project.")
    lines = Lines()
    own = file.get(project, "name", str, "project.") or ""
    optional = file.get(project, "optional-dependencies", dict, "project.") or {}
    groups = {name: file.get_texts(optional, name, "project.optional-dependencies.") for name in optional}
    dependencies: Sequence[str] = file.get_texts(project, "dependencies", "project.")
    if "dependencies" in dynamic:
        dependencies = _dynamic(path, tools, "dependencies")
    if "optional-dependencies" in dynamic:
        raise WrongInput(
            f"{path}: project.optional-dependencies is dynamic: its value is known only when the project is built",
            fix="Add the extras to [project.optional-dependencies], or name a requirements file with --from.",
        )
    lines.read(_with_extras(path, own, dependencies, groups, extras), path.parent)
    system = file.get(file.content, "build-system", dict) or {}
    requires = {_name(line) for line in file.get_texts(system, "requires", "build-system.")}
    requires_python = file.get(project, "requires-python", str, "project.")
    version_from_git = "version" in dynamic and bool(requires & {*_VERSION_FROM_GIT})
    return lines.package_list(), _project(path, own, requires_python, version_from_git=version_from_git)


def read_setup_cfg(path: Path, extras: Sequence[str]) -> tuple[PackageList, Project | None]:
    """Read `[options] install_requires`, with the dependencies of `extras`. Raises WrongInput for another file."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(read_text(path), source=str(path))
    except configparser.Error as error:
        raise WrongInput(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not parser.has_option("options", "install_requires") and not parser.has_option("metadata", "name"):
        raise WrongInput(
            f"{path} lists no dependencies: it has neither install_requires in [options] nor name in [metadata]",
            fix="Use --from with the file that lists them: pyproject.toml, requirements.txt or your script.",
        )
    own = parser.get("metadata", "name", fallback="").strip()
    groups = {name: _value_lines(path, value) for name, value in _section(parser, "options.extras_require").items()}
    dependencies = _value_lines(path, parser.get("options", "install_requires", fallback=""))
    lines = Lines()
    lines.read(_with_extras(path, own, dependencies, groups, extras), path.parent)
    return lines.package_list(), _project(path, own, parser.get("options", "python_requires", fallback=None))


def _section(parser: configparser.ConfigParser, name: str) -> dict[str, str]:
    return dict(parser.items(name)) if parser.has_section(name) else {}


def _value_lines(path: Path, value: str) -> list[str]:
    """The lines of a value; `file: a.txt, b.txt` means those of these files (setuptools)."""
    text = value.strip()
    if not text.startswith("file:"):
        return [line.strip() for line in (text.splitlines() if "\n" in text else text.split(";")) if line.strip()]
    names = [name.strip() for name in re.split(r"[,\n]", text.removeprefix("file:")) if name.strip()]
    return [line for name in names for line in read_text(path.parent / name).splitlines()]


def _dynamic(path: Path, tools: Mapping[str, Any], key: str) -> list[str]:
    """Dependencies that setuptools reads from files; no other backend says in TOML where its own come from."""
    table: Any = tools
    for step in ("setuptools", "dynamic", key, "file"):
        table = table.get(step) if isinstance(table, dict) else None
    names = [table] if isinstance(table, str) else table
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return [line for name in names for line in read_text(path.parent / name).splitlines()]
    raise WrongInput(
        f"{path}: project.{key} is dynamic: its value is known only when the project is built",
        fix=f"Write the {key} into [project], or name a requirements file or setup.cfg with --from.",
    )


def _with_extras(
    path: Path, own: str, dependencies: Sequence[str], groups: Mapping[str, Sequence[str]], extras: Sequence[str]
) -> list[str]:
    """The dependencies and those of each extra; an extra may name others by the project's own name (`mine[test]`)."""
    by_name = {canonicalize_name(name): lines for name, lines in groups.items()}
    found = list(dependencies)
    waiting, seen = [canonicalize_name(extra) for extra in extras], set()
    while waiting:
        extra = waiting.pop(0)
        if extra in seen:
            continue
        seen.add(extra)
        if extra not in by_name:
            known = f" It has: {', '.join(sorted(by_name))}." if by_name else ""
            raise WrongInput(f"{path} has no extra {extra!r}.{did_you_mean(extra, by_name) or known}")
        for line in by_name[extra]:
            if own and _name(line) == canonicalize_name(own):
                waiting += [canonicalize_name(extra) for extra in sorted(Requirement(line).extras)]
            else:
                found.append(line)
    return found


def _name(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ""


def _project(path: Path, name: str, requires_python: str | None, *, version_from_git: bool = False) -> Project | None:
    """The project with its code: `src`, else the package or module of its name; None if neither is there."""
    module = re.sub(r"[-.]+", "_", name)
    directory = path.parent
    candidates = ["src", *([module, module.lower(), f"{module}.py"] if module else [])]
    code = next((candidate for candidate in candidates if (directory / candidate).exists()), None)
    if code is None or not name:
        return None
    try:
        canonical = canonicalize_name(name, validate=True)
    except InvalidName as error:
        raise WrongInput(f"{path}: {name!r} is not a valid project name (PEP 508)") from error
    beside = sorted({path.name for pattern in _BESIDE for path in directory.glob(pattern) if path.is_file()})
    return Project(canonical, (*beside, code), requires_python, version_from_git)


def _no_project(path: Path, tools: Mapping[str, Any]) -> WrongInput:
    if "poetry" in tools:
        return WrongInput(
            f"{path} lists its dependencies in [tool.poetry], a Poetry format that ctk does not read",
            fix="Run `poetry export --without-hashes -o requirements.txt`, then use --from requirements.txt.",
        )
    if (path.parent / "setup.cfg").is_file():
        return WrongInput(f"{path} has no [project] table", fix=f"Give --from {path.parent / 'setup.cfg'} instead.")
    return WrongInput(
        f"{path} has no [project] table: it lists no dependencies",
        fix="Use --from with the file that lists them: requirements.txt, environment.yml or your script.",
    )
