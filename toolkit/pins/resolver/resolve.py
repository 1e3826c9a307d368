"""From a recipe's packages and a target to exactly the files to install: uv chooses versions, ctk chooses files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.pins.bases.target import valid_version
from toolkit.pins.index.asked import note_asked
from toolkit.pins.index.locate import unsafe_link
from toolkit.pins.index.uv import index_places
from toolkit.pins.index.wheels import HASHES_CHOOSE_SINCE, File, choose_file, supported_tags
from toolkit.pins.lock.model import LockedPackage
from toolkit.pins.resolver.additions import ask_for_additions
from toolkit.pins.resolver.constraints import broken_by, hard_constraints, soft_constraints
from toolkit.pins.resolver.dependents import closure, needed, who_requires_whom
from toolkit.pins.resolver.extras import require_extras
from toolkit.pins.resolver.keeping import ask_preferring, first_of_each, is_refused, keep_preferred, name_of
from toolkit.pins.resolver.question import Answer, Question, UnreadableSource, ask, compile_lines
from toolkit.pins.resolver.releases import list_files, pages
from toolkit.recipes.repositories import is_repository
from toolkit.support.errors import CheckFailed, ProgramFailed
from toolkit.support.http_client import may_lead
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import Lock
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
    """What is asked: direct requirements over a target.

    `prefer` are pins (`name==version`) and bounds (`name>=1,<2`) of the recipe's list and of earlier locks, the most
    wanted of a package first; `listed` are the pins of the list.
    `learned` is known of releases that install over this base and do not work there. `aims` are pins of the newest
    releases that fit, tried before the resolver's own choice. Of the names in `unbound` nothing is learned.
    `metadata` is that of source distributions which uv cannot read. `held` is what an earlier
    lock added of frameworks. `earlier` is that lock if nothing of it is to be upgraded.
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
    listed: frozenset[str] = frozenset()
    earlier: Lock | None = None

    def constraints(self) -> tuple[Constraint, ...]:
        """All that must hold, whatever the price."""
        return (*hard_constraints(self.target, self.protected), *self.held, *self.learned)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The packages to add, each with its file (by name), and the notes for the user.

    `aliases` are those of the target's that are asked for, and by whom. `only_binary` had to be wheels.
    """

    packages: tuple[LockedPackage, ...]
    files: Mapping[str, File]
    installer: LockedPackage | None = None
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only_binary: tuple[str, ...] = ()

    @property
    def addresses(self) -> dict[str, str]:
        """Where each file is, by the name of its package."""
        return {name: file.url for name, file in self.files.items()}


def resolve(uv: Uv, request: Request, *, fresh: bool = False) -> Resolution:
    """Choose versions and files. Raises Conflict if there is no solution, CheckFailed for an unknown extra."""
    question, answer = _choose_versions(uv, request, fresh=fresh)
    question, answer, releases = _prefer_wheels(uv, request, question, *find_releases(uv, question, answer))
    require_extras(request.packages, question.target, answer)
    edges = who_requires_whom(uv, question, answer.installed)
    unasked = answer.installed.keys() - needed(edges) if question.bound else frozenset[str]()
    assumed = closure(edges, _framework_requirements(request.target)) if request.target.recorded else frozenset[str]()
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
        only_binary=question.only_binary,
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


def _choose_versions(
    uv: Uv, request: Request, *, fresh: bool = False, only_binary: tuple[str, ...] = ()
) -> tuple[Question, Answer]:
    """Under the base's requirements and with all preferred versions, else with as many as possible.

    If the base's requirements leave no solution, only the hard constraints hold. An aim is not given up for a wheel
    (`only_binary`): it is newer than what has one.
    """
    hard = replace(first_question(request), only_binary=only_binary)
    soft = hard.under(
        constraint.line
        for constraint in (*soft_constraints(request.target, request.protected), *request.held, *request.learned)
    )
    kept = [line for line in request.prefer if not is_refused(line, request.learned)]
    preferred = soft.under([*soft.constraints, *first_of_each(kept), *request.aims])
    answer = ask_for_additions(uv, preferred, request.earlier) if request.earlier and not fresh else None
    if answer is None or not answer.possible:
        fresh = fresh or answer is not None  # what was answered from uv's cache is no answer of the index
        answer = (ask_preferring if kept or request.aims else ask)(uv, preferred, fresh=fresh)
        note_asked(uv, request.indexes, answer.installed)
    if answer.possible:
        return preferred, answer
    aimed = (attempt.under([*attempt.constraints, *request.aims]) for attempt in ((soft, hard) if request.aims else ()))
    for question in (*aimed, *(() if request.aims and only_binary else (soft, hard))):
        answer = ask(uv, question, again=True)
        if answer.possible and not kept:
            return question, answer
        if answer.possible:
            direct = {canonicalize_name(Requirement(line).name) for line in request.packages}
            return keep_preferred(uv, question, kept, direct)
    raise Conflict(request, hard, answer.proof or "")


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
    versions, places = dict(answer.installed), _given_places(question)
    for entry in release_entries(uv, question, versions):
        name = canonicalize_name(entry["name"])
        versions[name] = versions.get(name) or entry.get("version", "")
        files = [*entry.get("wheels", []), *([entry["sdist"]] if "sdist" in entry else [])]
        files += [entry["archive"]] if "archive" in entry else []
        for file in files:
            _require_safe(file["url"], places)
        found.setdefault(name, []).extend(
            File(file_name(file["url"]), file["url"], file.get("hashes", {}).get("sha256"), file.get("upload-time"))
            for file in files
        )
    return replace(answer, installed=versions), found


def _given_places(question: Question) -> tuple[str, ...]:
    """The addresses that the indexes and the recipe give."""
    given = (Requirement(line).url or "" for line in question.packages)
    return (*index_places(), *(index.url for index in question.indexes), *given)


def _require_safe(url: str, places: Sequence[str]) -> None:
    """Raise ProgramFailed (`unsafe-link`) for an address to which neither an index nor the recipe may lead.

    uv 0.13 follows a link of an index to a file of this host.
    """
    if not any(may_lead(place, url) for place in places):
        raise unsafe_link(file_name(url), "a package index")


def file_name(url: str) -> str:
    """The name of the file at `url`."""
    return unquote(urlsplit(url).path.rsplit("/", 1)[-1])


def _prefer_wheels(
    uv: Uv, request: Request, question: Question, answer: Answer, releases: dict[str, list[File]]
) -> tuple[Question, Answer, dict[str, list[File]]]:
    """If the chosen release has wheels, but none for this image, use an older one that has.

    Compiling numpy, for example, needs compilers that images lack: preferred versions of other packages are given up
    for a wheel. Releases without any wheel are left alone.
    """
    compiled: set[str] = set()
    preferred = {name_of(line) for line in request.prefer}
    while more := _compiled(uv, question, answer, releases, preferred) - compiled:
        compiled |= more
        better = replace(question, only_binary=tuple(sorted(compiled)))
        try:
            if not preferred:
                second = ask(uv, better, again=True)
                return (better, *find_releases(uv, better, second)) if second.possible else (question, answer, releases)
            better, second = _choose_versions(uv, request, only_binary=better.only_binary)
        except (Conflict, ProgramFailed) as error:  # an older release may be one that cannot be read
            if isinstance(error, UnreadableSource) and not preferred:
                raise  # `attempts` may read it otherwise
            break
        question, (answer, releases) = better, find_releases(uv, better, second)
    return question, answer, releases


def _compiled(
    uv: Uv, question: Question, answer: Answer, releases: Mapping[str, Sequence[File]], preferred: Collection[str]
) -> set[str]:
    """The packages that come as sources although their releases have wheels; of `preferred` ones the index is asked."""
    tags, found = supported_tags(question.target), set()
    for name, version in answer.installed.items():
        files = releases.get(name, ())
        chosen = choose_file(files, tags)
        if chosen is not None and chosen.is_wheel:
            continue
        if any(file.is_wheel for file in files) or (name in preferred and _has_wheels(uv, question, name, version)):
            found.add(name)
    return found


def _has_wheels(uv: Uv, question: Question, name: str, version: str) -> bool:
    """Whether the index lists wheels of a release: uv leaves out those for older Pythons than the question's."""
    release = valid_version(version)
    rows = list_files(name, question, pages(uv)).get(release, []) if release is not None else []
    return not _given_requirement(question.packages, name) and any(row["filename"].endswith(".whl") for row in rows)


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
        if "@" not in line:  # to parse each line for each package takes a second with 60 of them
            continue
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
