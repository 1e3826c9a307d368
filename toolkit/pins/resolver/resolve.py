"""From a recipe's packages and a target to exactly the files to install: uv chooses versions, ctk chooses files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.pins.index.locate import unsafe_link
from toolkit.pins.index.uv import index_places
from toolkit.pins.index.wheels import HASHES_CHOOSE_SINCE, File, choose_file, supported_tags
from toolkit.pins.lock.model import RECIPE, LockedPackage
from toolkit.pins.resolver.constraints import active_requirements, broken_by, hard_constraints, soft_constraints
from toolkit.pins.resolver.extras import require_extras
from toolkit.pins.resolver.question import Answer, Question, ask, compile_lines, require_lines
from toolkit.recipes.repositories import is_repository
from toolkit.support.errors import CheckFailed, ProgramFailed
from toolkit.support.http_client import may_lead
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.protected import ProtectedSet
    from toolkit.pins.resolver.constraints import Constraint
    from toolkit.pins.resolver.question import Metadata
    from toolkit.recipes.model import Index


class Conflict(CheckFailed):
    """The packages conflict over this base. `proof` is the resolver's own derivation."""

    code = "requirements-conflict"

    def __init__(self, request: Request, question: Question, proof: str) -> None:
        super().__init__("these packages conflict on this base")
        self.request = request
        self.question = question
        self.proof = proof


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: direct requirements over a target. `prefer` are pins (`name==version`) of an earlier lock.

    `learned` is known of releases that install over this base and do not work there. `aims` are pins of the newest
    releases that fit, tried before the resolver's own choice. Of the names in `unbound` nothing is learned.
    `metadata` is that of source distributions which uv cannot read. `held` is what an earlier
    lock added of frameworks.
    """

    target: PythonTarget
    packages: tuple[str, ...]
    protected: ProtectedSet
    exclude_newer: str | None = None
    prefer: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    learned: tuple[Constraint, ...] = ()
    aims: tuple[str, ...] = ()
    unbound: frozenset[str] = frozenset()
    metadata: tuple[Metadata, ...] = ()
    held: tuple[Constraint, ...] = ()

    def constraints(self) -> tuple[Constraint, ...]:
        """All that must hold, whatever the price."""
        return (*hard_constraints(self.target, self.protected), *self.held, *self.learned)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The packages to add, each with its file (by name), and the notes for the user.

    `aliases` are those of the target's that are asked for, and by whom.
    """

    packages: tuple[LockedPackage, ...]
    files: Mapping[str, File]
    installer: LockedPackage | None = None
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, str]:
        """Where each file is, by the name of its package."""
        return {name: file.url for name, file in self.files.items()}


def resolve(uv: Uv, request: Request, *, fresh: bool = False) -> Resolution:
    """Choose versions and files. Raises Conflict if there is no solution, CheckFailed for an unknown extra."""
    question, answer = _choose_versions(uv, request, fresh=fresh)
    question, answer, releases = _prefer_wheels(uv, question, *find_releases(uv, question, answer))
    require_extras(request.packages, question.target, answer)
    edges = who_requires_whom(uv, question, answer.installed)
    unasked = answer.installed.keys() - needed(edges) if question.bound else frozenset[str]()
    assumed = _closure(edges, _framework_requirements(request.target)) if request.target.recorded else frozenset[str]()
    tags = supported_tags(request.target)
    packages, chosen = [], {}
    for name, version in sorted(answer.installed.items()):
        if name in assumed or name in unasked:
            continue
        url = _given_address(request.packages, name)
        file = choose_file(releases.get(name, ()), tags)
        if file is None and not is_repository(url):
            raise CheckFailed(
                f"{name} {version} has no file for Python {request.target.minor} on {request.target.architecture}",
                fix=f"Request another version of {name}, or drop it from the recipe.",
            )
        if file is not None:
            chosen[name] = file
        packages.append(
            LockedPackage(
                name=name,
                version=version,
                file=file.name if file else None,
                sha256=file.sha256 if file else None,
                url=url,
                replaces=answer.removed.get(name),
                required_by=tuple(sorted(edges.get(name, ()))),
            )
        )
    return Resolution(
        packages=tuple(packages),
        files=chosen,
        installer=_newer_pip(uv, request, packages),
        assumed=tuple(f"{name}=={answer.installed[name]}" for name in sorted(assumed & answer.installed.keys())),
        notes=_notes(request, answer),
        aliases=_asked_aliases(uv, question, answer.installed),
    )


def first_question(request: Request) -> Question:
    """The question that the user asked, under what must hold."""
    packages = (
        (*request.packages, *_framework_requirements(request.target)) if request.target.recorded else request.packages
    )
    aliases = {name: request.target.installed[name] for name in request.target.aliases}
    target = replace(request.target, installed=aliases) if request.target.recorded else request.target
    lines = (constraint.line for constraint in request.constraints())
    question = Question(
        target, packages, exclude_newer=request.exclude_newer, indexes=request.indexes, metadata=request.metadata
    )
    return question.under(lines)


def _choose_versions(uv: Uv, request: Request, *, fresh: bool) -> tuple[Question, Answer]:
    """First with preferences (the earlier lock, the base's requirements), then with hard constraints only."""
    hard = first_question(request)
    soft = hard.under(
        constraint.line
        for constraint in (*soft_constraints(request.target, request.protected), *request.held, *request.learned)
    )
    kept = [line for line in request.prefer if not _is_refused(line, request.learned)]
    preferred = soft.under([*soft.constraints, *kept, *request.aims])
    answer = ask(uv, preferred, fresh=fresh)
    if answer.possible:
        return preferred, answer
    aimed = (attempt.under([*attempt.constraints, *request.aims]) for attempt in ((soft, hard) if request.aims else ()))
    for question in (*aimed, soft, hard):
        answer = ask(uv, question, again=True)
        if answer.possible:
            return question, answer
    raise Conflict(request, hard, answer.proof or "")


def _is_refused(pin: str, constraints: Iterable[Constraint]) -> bool:
    """Whether one of `constraints` refuses `name==version`."""
    name, _, version = pin.partition("==")
    return any(constraint.name == name and not satisfies(version, constraint.specifier) for constraint in constraints)


def _framework_requirements(target: PythonTarget) -> tuple[str, ...]:
    """A recorded base names only its framework; the resolver finds the dependencies."""
    return tuple(
        f"{distribution.name}=={distribution.version}"
        for distribution in target.installed.values()
        if distribution.name not in target.aliases
    )


def release_entries(uv: Uv, question: Question, versions: Mapping[str, str]) -> list[dict[str, Any]]:
    """The index data of each release, as `[[packages]]` of PEP 751: every file, whatever it is for."""
    pins = [_given_requirement(question.packages, name) or f"{name}=={version}" for name, version in versions.items()]
    if not pins:
        return []
    options = ["--no-deps", "--universal", "--format", "pylock.toml"]
    done = compile_lines(uv, replace(question, packages=tuple(sorted(pins)), constraints=()), *options)
    done.require("asking the index for the files of the packages")
    entries: list[dict[str, Any]] = parse_toml(done.stdout).get("packages", [])
    return entries


def find_releases(uv: Uv, question: Question, answer: Answer) -> tuple[Answer, dict[str, list[File]]]:
    """Every file of each release, whatever it is for; none for a repository.

    The answer comes back with the versions of what the recipe gives by an address: uv tells them here only.
    """
    found: dict[str, list[File]] = {}
    versions = dict(answer.installed)
    for entry in release_entries(uv, question, versions):
        name = canonicalize_name(entry["name"])
        versions[name] = versions.get(name) or entry.get("version", "")
        files = [*entry.get("wheels", []), *([entry["sdist"]] if "sdist" in entry else [])]
        files += [entry["archive"]] if "archive" in entry else []
        for file in files:
            _require_safe(file["url"], question)
        found.setdefault(name, []).extend(
            File(file_name(file["url"]), file["url"], file.get("hashes", {}).get("sha256"), file.get("upload-time"))
            for file in files
        )
    return replace(answer, installed=versions), found


def _require_safe(url: str, question: Question) -> None:
    """Raise ProgramFailed (`unsafe-link`) for an address to which neither an index nor the recipe may lead.

    uv 0.13 follows a link of an index to a file of this host.
    """
    given = (Requirement(line).url or "" for line in question.packages)
    if not any(may_lead(place, url) for place in (*index_places(), *(index.url for index in question.indexes), *given)):
        raise unsafe_link(file_name(url), "a package index")


def file_name(url: str) -> str:
    """The name of the file at `url`."""
    return unquote(urlsplit(url).path.rsplit("/", 1)[-1])


def _prefer_wheels(
    uv: Uv, question: Question, answer: Answer, releases: dict[str, list[File]]
) -> tuple[Question, Answer, dict[str, list[File]]]:
    """If the chosen release has wheels, but none for this image, use an older one that has.

    Compiling numpy, for example, needs compilers that images lack. Releases without any wheel are left alone.
    """
    tags = supported_tags(question.target)
    compiled = []
    for name in sorted(answer.installed):
        files = releases.get(name, [])
        chosen = choose_file(files, tags)
        if (chosen is None or not chosen.is_wheel) and any(file.is_wheel for file in files):
            compiled.append(name)
    if not compiled:
        return question, answer, releases
    better = replace(question, only_binary=tuple(compiled))
    second = ask(uv, better, again=True)
    if not second.possible:
        return question, answer, releases
    return better, *find_releases(uv, better, second)


def _asked_aliases(uv: Uv, question: Question, versions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Which installed packages require which alias; nothing if uv cannot read one (psycopg2 has no wheel)."""
    aliases = question.target.aliases
    if not aliases:
        return {}
    try:
        edges = who_requires_whom(uv, question, {**versions, **dict.fromkeys(aliases, "")})
    except ProgramFailed:
        return {}
    return {name: tuple(sorted(edges[name])) for name in sorted(aliases & edges.keys())}


def who_requires_whom(uv: Uv, question: Question, versions: Mapping[str, str]) -> dict[str, set[str]]:
    """For each name in `versions` the names that require it, RECIPE for the recipe's own request.

    A version "" leaves it open. Raises NotOnIndex for a package that no index has, ProgramFailed if uv finds no
    answer for another reason.
    """
    pins = [f"{name}=={version}" for name, version in versions.items() if version]
    staying = sorted(question.target.installed.keys() - versions.keys())
    wanted = sorted({root for line in question.packages for root in _roots(line, question.target, versions)})
    if not wanted:
        return {}
    asked = replace(question, packages=tuple(wanted), constraints=tuple(sorted(pins)))
    done = compile_lines(uv, asked, "--annotation-style", "line", excludes=staying)
    require_lines(done, "asking who requires whom")
    found: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        requirement, _, origin = line.partition("# via ")
        if not origin:
            continue
        name = canonicalize_name(Requirement(requirement.strip()).name)
        by = [word.strip() for word in origin.split(",")]
        # The project that binds packages to an index asks for nothing itself.
        found[name] = {canonicalize_name(word) for word in by if not word.startswith("-") and "(" not in word}
        if any(word.startswith("-r") for word in by):
            found[name].add(RECIPE)
    return found


def _roots(line: str, target: PythonTarget, versions: Mapping[str, str]) -> Iterator[str]:
    """The recipe's line itself; of one whose package is in the base, what its extras add: `jax[cuda12]` over a JAX."""
    requirement = Requirement(line)
    name = canonicalize_name(requirement.name)
    if name in versions:
        yield line
    elif name in target.installed:
        for needed in active_requirements(target.installed[name].requires, target.environment(), requirement.extras):
            if canonicalize_name(needed.name) in versions:
                needed.marker = None
                yield str(needed)


def _closure(edges: Mapping[str, set[str]], roots: Iterable[str]) -> frozenset[str]:
    """The transitive dependencies of `roots`, themselves included."""
    reached: set[str] = {canonicalize_name(Requirement(root).name) for root in roots}
    while True:
        more = {name for name, by in edges.items() if by & reached} - reached
        if not more:
            return frozenset(reached)
        reached |= more


def needed(edges: Mapping[str, set[str]]) -> frozenset[str]:
    """The packages of the recipe with their transitive dependencies."""
    return _closure(edges, [name for name, by in edges.items() if RECIPE in by])


def _newer_pip(uv: Uv, request: Request, packages: Sequence[LockedPackage]) -> LockedPackage | None:
    """A pip that can take every chosen file, where the image's own cannot; None if it can."""
    if request.target.recorded or not packages:
        return None
    own = request.target.installed.get("pip")
    if own is None:
        raise CheckFailed(
            f"the Python {request.target.minor} of this base has no pip",
            fix="Add it to the base first: python3-pip from its distribution.",
            code="no-pip",
        )
    known = supported_tags(request.target, own.version)
    wheels = [File(package.file, "", package.sha256) for package in packages if package.file and package.is_wheel]
    takes_all = all(choose_file([file], known) for file in wheels)
    if takes_all and Version(own.version) >= Version(HASHES_CHOOSE_SINCE):
        return None
    question = Question(request.target, ("pip",), exclude_newer=request.exclude_newer)
    return wheels_only(uv, question)[0]


def wheels_only(uv: Uv, question: Question) -> tuple[LockedPackage, ...]:
    """The question's packages with all that they need, as wheels, into an empty directory.

    Raises ProgramFailed if some have no wheel, or conflict.
    """
    empty = replace(question, target=replace(question.target, installed={}), only_binary=(":all:",))
    answer = ask(uv, empty, again=True)
    if not answer.possible:
        raise ProgramFailed(
            f"the tools that build a source distribution are not available: {', '.join(question.packages)}",
            last_lines=(answer.proof or "",),
            code="no-build-tools",
        )
    answer, releases = find_releases(uv, empty, answer)
    tags = supported_tags(question.target)
    chosen = {name: choose_file(releases.get(name, ()), tags) for name in sorted(answer.installed)}
    return tuple(
        LockedPackage(name, answer.installed[name], file.name, file.sha256) for name, file in chosen.items() if file
    )


def _given_requirement(packages: Iterable[str], name: str) -> str | None:
    """The recipe's own line where it gives an address instead of a version."""
    for line in packages:
        requirement = Requirement(line)
        if requirement.url and canonicalize_name(requirement.name) == name:
            return line
    return None


def _given_address(packages: Iterable[str], name: str) -> str | None:
    line = _given_requirement(packages, name)
    return Requirement(line).url if line else None


def _notes(request: Request, answer: Answer) -> tuple[str, ...]:
    notes = [f"{name} {version} was yanked{': ' + why if why else ''}" for name, version, why in answer.yanked]
    notes += [
        f"{bound.by} requires {bound.line}, which is not met" for bound in broken_by(request.target, answer.installed)
    ]
    return tuple(sorted(notes))
