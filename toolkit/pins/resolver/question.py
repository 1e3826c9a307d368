"""A resolver run: its input files and arguments, and its parsed result."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from toolkit.pins.bases.target import valid_version
from toolkit.pins.index.repositories import unreachable
from toolkit.pins.index.uv import area_errors, own_words, python_for
from toolkit.pins.index.wheels import uv_platform
from toolkit.recipes.model import IndexKind
from toolkit.support.errors import CtkError, MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.files import make_directory
from toolkit.support.redaction import redact
from toolkit.support.staging import staging

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from toolkit.inventory.contents.model import Distribution
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.recipes.model import Index
    from toolkit.support.processes import Completed

# pkg_resources was deprecated for years and left setuptools with version 82; old setup.py files still import it.
WITH_PKG_RESOURCES = "setuptools<81"
_NO_PKG_RESOURCES = "No module named 'pkg_resources'"
_UNREADABLE = re.compile(r"(?:Failed to (?:build|download and build) `|hint: `)([A-Za-z0-9._-]+)(?:==|` \(v)([^`)]+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NO_GIT, _GIT_FAILED = "Git executable not found", "Git operation failed"
_GIT_FIX = "Load the module that provides it (`module load git`), or ask the administrator."
_REPOSITORY = re.compile(r"Failed to (?:build|download and build) `\S+ @ (git\+[^`]+)`")
# What uv says of an address in the user's own list. Source: uv 0.13.
_MISTAKE = re.compile(
    r"cause: ((?:The source distribution `\S+` has no subdirectory `[^`]+`"
    r"|Package metadata name `[^`]+` does not match given name `[^`]+`))"
)
_MISSING_EXTRA = re.compile(r"The package `([^`=\[]+)(?:==([^`]+))?` does not have an extra named `([^`]+)`")
_NOT_FOUND = re.compile(r"Because ([a-z0-9._-]+) was not found in the package registry")
_PROJECT = "ctk-question"
_CONFUSED = re.compile(r"hint: `([^`]+)` is often confused for `([^`]+)`")
_YANKED = re.compile(r'`([^`=]+)==([^`]+)` is yanked(?: \(reason: "(.*)"\))?')


class UnreadableSource(ProgramFailed):
    """uv could not determine the requirements of `name` in `version`, usually because of a `setup.py`."""

    code = "resolver-failed"

    def __init__(self, name: str, version: str, lines: tuple[str, ...]) -> None:
        super().__init__(
            f"the requirements of {name} {version} cannot be read on this host",
            fix="A source distribution may need the image's Python version on this host. Or request another version.",
            last_lines=lines[-12:],
        )
        self.name = canonicalize_name(name)
        self.version = version
        missing = next(filter(None, map(_NO_MODULE.search, lines)), None)
        self.missing_module = missing[1] if missing else None

    @property
    def pin(self) -> str:
        return f"{self.name}=={self.version}"


class NotOnIndex(ProgramFailed):
    """No index has the package `name`."""

    def __init__(self, name: str, lines: tuple[str, ...]) -> None:
        super().__init__(f"no index has a package {name}", code="no-such-package", last_lines=lines[-12:])
        self.name = name


@dataclass(frozen=True, slots=True)
class Metadata:
    """The requirements of a release as its source distribution holds them: what uv need not run `setup.py` for."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What to install over a target. `constraints` are lines that hold for whatever is chosen.

    `only_binary` names packages that must not come as source distributions; `exclude_newer` is a date (RFC 3339 or
    `2021-03-07`, that day included). `build_constraints` hold for what reads source distributions on this host.
    `indexes` are used in addition to PyPI; `metadata` is used instead of building a source distribution.
    """

    target: PythonTarget
    packages: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    only_binary: tuple[str, ...] = ()
    exclude_newer: str | None = None
    build_constraints: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    metadata: tuple[Metadata, ...] = ()

    def asking(self, packages: Iterable[str]) -> Question:
        return replace(self, packages=tuple(packages))

    def under(self, constraints: Iterable[str]) -> Question:
        return replace(self, constraints=tuple(constraints))

    @property
    def options(self) -> list[str]:
        """The arguments of every call of uv for this target."""
        options = ["--python", python_for(self.target.minor), "--python-version", self.target.python]
        options += ["--python-platform", uv_platform(self.target)]
        # Of a file without a line uv warns.
        options += ["--build-constraints", "build-constraints.txt"] if self.build_constraints else []
        for index in self.indexes:
            if not index.packages:
                is_page = index.kind == IndexKind.FIND_LINKS
                options += ["--find-links", index.url] if is_page else ["--index", f"{index.name}={index.url}"]
        return options + (["--exclude-newer", self.exclude_newer] if self.exclude_newer else [])

    @property
    def bound(self) -> tuple[str, ...]:
        """The packages that may come from one index only."""
        return tuple(sorted({package for index in self.indexes for package in index.packages}))

    @property
    def inputs(self) -> list[str]:
        """The files of requirements."""
        return ["packages.txt", *(["pyproject.toml"] if self.bound else [])]


@dataclass(frozen=True, slots=True)
class Answer:
    """What would change. `installed` and `removed` are versions by name; if there is no solution, `proof` says why.

    uv prints no version for the URL of an archive or a repository: there it is "".
    `missing_extras` are (name, version, extra), `yanked` (name, version, reason).
    """

    installed: dict[str, str]
    removed: dict[str, str]
    proof: str | None = None
    missing_extras: tuple[tuple[str, str, str], ...] = ()
    yanked: tuple[tuple[str, str, str], ...] = ()

    @property
    def possible(self) -> bool:
        return self.proof is None


def ask(uv: Uv, question: Question, *, fresh: bool = False, again: bool = False) -> Answer:
    """What uv would install. `again` is for a question close to one just asked, `fresh` for news from the index.

    Raises ProgramFailed if uv fails for another reason than that there is no solution.
    """
    with _directory(uv, question) as directory:
        write_stub(directory / "site", question.target.installed.values())
        arguments = ["pip", "install", "--dry-run", "--target", "site", *question.options, "--output-format", "json"]
        for name in question.only_binary:
            arguments += ["--only-binary", name]
        arguments += [*(word for name in question.inputs for word in ("-r", name)), *_under_constraints(question)]
        done = uv.ask_again(arguments, directory) if again else uv.call(arguments, directory, fresh=fresh)
    if not done.ok and _NO_PKG_RESOURCES in done.stderr and not question.build_constraints:
        return ask(uv, replace(question, build_constraints=(WITH_PKG_RESOURCES,)), fresh=fresh, again=again)
    return _answer(done, question.packages)


def compile_lines(
    uv: Uv, question: Question, *options: str, excludes: Iterable[str] = (), prefer: Iterable[str] | None = None
) -> Completed:
    """`uv pip compile` of the question's packages, ignoring what is installed and `excludes`.

    Its lines are on stdout. Where they are not, `require_lines` says why. uv takes the pins in `prefer` where it can;
    the index is asked for all that they leave open.
    """
    with _directory(uv, question) as directory:
        (directory / "excludes.txt").write_text(excluded := _lines(excludes))
        arguments = ["pip", "compile", "--no-header", *_without_platform(question.options, options), *options]
        arguments += [*_under_constraints(question), *(["--excludes", "excludes.txt"] if excluded else [])]
        if preferred := _lines(prefer or ()):
            # uv prefers what an existing output file has.
            (directory / "preferred.txt").write_text(preferred)
            arguments += ["--output-file", "preferred.txt"]
        asking = uv.ask_again if prefer is None else uv.call
        done = asking([*arguments, *question.inputs], directory)
    return replace(done, stderr="\n".join(own_words(done.stderr)))


def require_lines(done: Completed, what: str) -> Completed:
    """What `compile_lines` returned, if uv succeeded. Raises NotOnIndex for an unknown package, else ProgramFailed."""
    if not done.ok and (missing := missing_package(done.stderr)) is not None:
        raise NotOnIndex(missing, tuple(done.stderr.splitlines()))
    return done.require(what)


def missing_package(text: str) -> str | None:
    """The package that no index has, by uv's own explanation; None if something else is wrong."""
    found = _NOT_FOUND.search(" ".join(text.split()))
    return found[1] if found else None


def _under_constraints(question: Question) -> list[str]:
    return ["-c", "constraints.txt"] if question.constraints else []


def write_stub(site: Path, distributions: Iterable[Distribution]) -> None:
    """A site directory that holds no more than each distribution's metadata: to uv it is the installed environment."""
    site.mkdir()
    for distribution in distributions:
        if valid_version(distribution.version) is None:
            continue
        information = site / f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        information.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {distribution.name}", f"Version: {distribution.version}"]
        lines += [f"Requires-Dist: {line}" for line in distribution.requires if _is_requirement(line)]
        lines += [f"Provides-Extra: {extra}" for extra in distribution.extras]
        (information / "METADATA").write_text("\n".join(lines) + "\n")
        (information / "RECORD").touch()
        (information / "INSTALLER").write_text("pip\n")


def _answer(done: Completed, asked: Iterable[str]) -> Answer:
    if not done.ok:
        if "No solution found" not in done.stderr:
            raise _confusion(done, asked) or _failure(done)
        return Answer({}, {}, proof=_proof(done.stderr))
    document = json.loads(done.stdout)
    if document.get("schema", {}).get("version") != "preview" or "changes" not in document:
        raise ProgramFailed("this version of ctk cannot read the output of uv", fix="Reinstall ctk, which includes uv.")
    versions: dict[str, dict[str, str]] = {}
    for change in document["changes"]:
        versions.setdefault(change["action"], {})[canonicalize_name(change["name"])] = change.get("version", "")
    return Answer(
        installed=versions.get("installed", {}),
        removed=versions.get("uninstalled", {}),
        missing_extras=tuple(
            (canonicalize_name(name), version, extra) for name, version, extra in _MISSING_EXTRA.findall(done.stderr)
        ),
        yanked=tuple((canonicalize_name(name), version, why) for name, version, why in _YANKED.findall(done.stderr)),
    )


def _confusion(done: Completed, asked: Iterable[str]) -> WrongInput | None:
    """uv knows some names that mean another package (sklearn). Only names that the user gave are checked."""
    found = _CONFUSED.search(done.stderr)
    names = {canonicalize_name(Requirement(line).name) for line in asked}
    if found is None or canonicalize_name(found[1]) not in names:
        return None
    return WrongInput(
        f"{found[1]} cannot be installed: it is often confused for {found[2]}",
        fix=f"Use {found[2]} instead of {found[1]}.",
        code="no-such-package",
    )


def _failure(done: Completed) -> CtkError:
    """The error for a package that uv could not read, usually a source distribution that this host cannot build."""
    if _NO_GIT in done.stderr:
        return MissingOnHost(
            "git is not installed on this host, and a package comes from a git repository", fix=_GIT_FIX
        )
    if _GIT_FAILED in done.stderr and (repository := _REPOSITORY.search(done.stderr)):
        return unreachable(repository[1], "\n".join(own_words(done.stderr)))
    if mistake := _MISTAKE.search(" ".join(done.stderr.split())):
        return WrongInput(
            f"an address in `packages` is wrong: {redact(mistake[1])}",
            fix="Correct it in the recipe: NAME must be the name in the project's metadata.",
            code="wrong-address",
        )
    lines = own_words(done.stderr)
    culprit = _UNREADABLE.search(done.stderr)
    if culprit:
        return UnreadableSource(culprit[1], culprit[2], lines)
    return ProgramFailed(
        "the requirements of a package cannot be read on this host",
        fix="A source distribution may need the image's Python version on this host. Or request another version.",
        code="resolver-failed",
        last_lines=lines[-12:],
    )


def _proof(stderr: str) -> str:
    text = re.sub(
        r"\{[^{}]*\}", "", stderr.partition("No solution found")[2]
    )  # markers: numpy{python_version < '3.14'}
    return re.sub(r"\s+", " ", text.partition("cause:")[2].partition("\nhint:")[0]).strip()


def _without_platform(options: list[str], more: Iterable[str]) -> list[str]:
    """uv refuses a platform where the answer is for all of them."""
    if "--universal" not in more:
        return options
    at = options.index("--python-platform")
    return options[:at] + options[at + 2 :]


@contextmanager
def _directory(uv: Uv, question: Question) -> Iterator[Path]:
    # Not in the current directory: uv looks for settings there and above, and those of a project must not be used.
    with area_errors(uv.scratch):
        make_directory(uv.scratch)
    with area_errors(uv.scratch), staging(uv.scratch) as directory:
        (directory / "packages.txt").write_text(_lines(question.packages))
        (directory / "constraints.txt").write_text(_lines(question.constraints))
        (directory / "build-constraints.txt").write_text(_lines(question.build_constraints))
        if question.bound:
            (directory / "pyproject.toml").write_text(_bindings(question) + _known_metadata(question, "tool.uv."))
        elif question.metadata:
            (directory / "uv.toml").write_text(_known_metadata(question))
        yield directory


def _known_metadata(question: Question, table: str = "") -> str:
    lines = []
    for known in question.metadata:
        lines += [f"[[{table}dependency-metadata]]", f'name = "{known.name}"', f'version = "{known.version}"']
        lines += [f"requires-dist = {json.dumps(known.requires)}", f"provides-extra = {json.dumps(known.extras)}"]
    return _lines(lines)


def _bindings(question: Question) -> str:
    """A project that requires each package bound to an index: uv heeds the binding only of direct requirements.

    So packages that nothing requires are chosen, too; `dependents.needed` finds the required ones.
    """
    bound = [index for index in question.indexes if index.packages]
    lines = ["[project]", f'name = "{_PROJECT}"', 'version = "0"', f"dependencies = {json.dumps(question.bound)}"]
    lines += ["[tool.uv.sources]"]
    lines += [f'{package} = {{ index = "{index.name}" }}' for index in bound for package in index.packages]
    for index in bound:
        lines += ["[[tool.uv.index]]", f'name = "{index.name}"', f"url = {json.dumps(index.url)}", "explicit = true"]
        lines += ['format = "flat"'] if index.kind == IndexKind.FIND_LINKS else []
    return _lines(lines)


def _is_requirement(line: str) -> bool:
    try:
        Requirement(line)
    except InvalidRequirement:
        return False
    return True


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
