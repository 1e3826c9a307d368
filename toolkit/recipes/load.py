"""From `NAME.toml` and `bases.toml` to Recipe and Base: every key checked, every mistake named with file and line."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.recipes.environment import problem
from toolkit.recipes.indexes import NAME as INDEX_NAME
from toolkit.recipes.indexes import credentials_variable, name_of, web_address
from toolkit.recipes.model import (
    INSTALLERS,
    REQUIRABLE,
    Base,
    Bootstrap,
    FileCopy,
    Index,
    IndexKind,
    JobDefaults,
    Recipe,
)
from toolkit.recipes.references import refuse_credentials
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput
from toolkit.support.paths import user_path
from toolkit.support.redaction import holds_secret
from toolkit.support.text import did_you_mean, one_line
from toolkit.support.tomlfile import TomlFile, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from toolkit.support.findings import Verdict

Word = TypeVar("Word", bound=str)

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
APT_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?")  # Debian policy 5.6.1, =version
DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")  # PEP 508
_NOT_IN_URL = re.compile(r"[\s\"'`$\\]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_BASE_TEXTS = (
    "bootstrap",
    "reference",
    "digest",
    "python",
    "framework",
    "framework_version",
    "cuda",
    "installer",
    "description",
    "source",
)
RECIPE_KEYS = (
    *("description", "base", "apt", "packages", "index", "post", "files", "environment", "job", "require", "imports"),
)
_JOB_OPTIONS = {key: option.in_recipe for key, option in OPTIONS.items() if option.in_recipe}


def load_bases(path: Path) -> dict[str, Base]:
    """Read `bases.toml`: one table a base. Raises WrongInput with file, line and key."""
    file = read_toml(path)
    return {name: _base(file, name, table) for name, table in file.content.items()}


def _base(file: TomlFile, name: str, table: Any) -> Base:
    if not isinstance(table, dict):
        file.fail(name, "should be a table: [name] and its keys below")
    prefix = f"{name}."
    file.check_keys(table, (*_BASE_TEXTS, "apt"), prefix)
    texts = {key: _text(file, table, key, prefix) for key in _BASE_TEXTS}
    for key in ("bootstrap", "reference"):
        if not texts[key]:
            file.fail(name, f"the key {key} is missing")
    bootstrap = _one_of(file, f"{prefix}bootstrap", texts["bootstrap"], Bootstrap)
    if bootstrap is Bootstrap.DOCKER:
        try:
            refuse_credentials(texts["reference"] or "")
        except WrongInput as error:
            file.fail(f"{prefix}reference", error.message, fix=error.fix)
    if texts["installer"]:
        _one_of(file, f"{prefix}installer", texts["installer"], INSTALLERS)
    if texts["digest"] and not _DIGEST.fullmatch(texts["digest"]):
        file.fail(f"{prefix}digest", "should be sha256: and 64 hexadecimal digits")
    given: dict[str, Any] = {key: value for key, value in texts.items() if value is not None}
    return Base(**{**given, "name": name, "bootstrap": bootstrap, "apt": _apt(file, table, prefix)})


def load_recipe(path: Path, bases: Mapping[str, Base], *, base: Base | None = None) -> Recipe:
    """Read a recipe. `base` replaces the one that it names. Raises WrongInput with file, line and key."""
    file = read_toml(path)
    table = file.content
    file.check_keys(table, RECIPE_KEYS)
    return Recipe(
        name=path.stem,
        path=path,
        base=base or _named_base(file, bases),
        description=_text(file, table, "description") or "",
        apt=_apt(file, table),
        packages=_packages(file),
        post=file.get(table, "post", str) or "",
        files=tuple(_file_copy(file, entry, number) for number, entry in enumerate(_tables(file, "files"), 1)),
        environment=_environment(file),
        job=_job(file),
        verdict=_required_verdict(file),
        indexes=_indexes(file),
        import_skip=_import_skip(file),
        rebased=base is not None,
    )


def _named_base(file: TomlFile, bases: Mapping[str, Base]) -> Base:
    name = _text(file, file.content, "base")
    if name is None:
        file.fail("base", "is missing: name the base to start from", fix="`ctk bases` lists them.")
    if name not in bases:
        file.fail("base", f'there is no base "{name}".{did_you_mean(name, bases)}', fix="`ctk bases` lists them.")
    return bases[name]


def _packages(file: TomlFile) -> tuple[str, ...]:
    from packaging.requirements import InvalidRequirement, Requirement

    from toolkit.recipes.requirements import how_to_write

    packages = file.get_texts(file.content, "packages")
    for package in packages:
        try:
            requirement = Requirement(one_line(package, "a requirement"))
        except WrongInput as error:
            file.fail("packages", error.message)
        except InvalidRequirement as error:
            reason = str(error).splitlines()[0]
            meant = how_to_write(package)
            said = f'"{package}" is not a package requirement'
            file.fail("packages", said if meant else f"{said}: {reason}", fix=meant)
        url = requirement.url or ""
        address = web_address(url)
        if address is None and url.startswith(("http://", "https://")):
            file.fail("packages", f'"{package}" is not a package requirement: its URL is not valid')
        if address is not None and "@" in address.netloc:
            reason = "contains a user name or a password, which would end up in the lock and the image"
            file.fail("packages", f"the URL of {requirement.name} {reason}")
    return packages


def _apt(file: TomlFile, table: Mapping[str, Any], prefix: str = "") -> tuple[str, ...]:
    packages = file.get_texts(table, "apt", prefix)
    for package in packages:
        if not APT_PACKAGE.fullmatch(package):
            file.fail(f"{prefix}apt", f"{package!r} is not the name of a Debian package")
    return packages


def _tables(file: TomlFile, key: str) -> list[dict[str, Any]]:
    entries = file.get(file.content, key, list) or []
    for entry in entries:
        if not isinstance(entry, dict):
            file.fail(key, f"should be [[{key}]] tables, not {entry!r}")
    return entries


def _file_copy(file: TomlFile, entry: Mapping[str, Any], number: int) -> FileCopy:
    prefix = f"files[{number}]."
    file.check_keys(entry, ("from", "to"), prefix)
    source, target = _text(file, entry, "from", prefix), _text(file, entry, "to", prefix)
    if not source or not target:
        file.fail(prefix.rstrip("."), 'needs both "from" and "to"')
    try:
        path = user_path(source) if source.startswith("~") else (file.path.parent / source).absolute()
    except WrongInput as error:
        file.fail(f"{prefix}from", error.message)
    if not target.startswith("/"):
        file.fail(f"{prefix}to", f'should be an absolute path in the image, not "{target}"')
    return FileCopy(path, target)


def _indexes(file: TomlFile) -> tuple[Index, ...]:
    found: list[Index] = []
    for number, entry in enumerate(_tables(file, "index"), 1):
        index = _index(file, entry, f"index[{number}].")
        taken = {package for other in found for package in other.packages} & {*index.packages}
        if taken:
            file.fail(f"index[{number}].packages", f"{min(taken)} is already assigned to another index")
        if index.name in [other.name for other in found]:
            file.fail(f"index[{number}]", f'two indexes are named "{index.name}"', fix='Give each a `name = "…"`.')
        found.append(index)
    return tuple(found)


def _index(file: TomlFile, entry: Mapping[str, Any], prefix: str) -> Index:
    from packaging.utils import canonicalize_name

    file.check_keys(entry, ("name", "url", "packages", "kind"), prefix)
    url = _text(file, entry, "url", prefix) or ""
    parts = web_address(url)
    if parts is None or _NOT_IN_URL.search(url):
        file.fail(f"{prefix}url", "should be an http or https URL")
    name = _text(file, entry, "name", prefix) or name_of(url)
    if not INDEX_NAME.fullmatch(name):
        file.fail(f"{prefix}name", f"should contain only lower-case letters, digits and dashes, not {name!r}")
    if "@" in parts.netloc or parts.query:
        variable = credentials_variable(name)
        file.fail(
            f"{prefix}url",
            "contains credentials, which would end up in the lock and the image",
            fix=f"Set {variable}_USERNAME and {variable}_PASSWORD where you run ctk, or write them to ~/.netrc.",
        )
    kind = _one_of(file, f"{prefix}kind", _text(file, entry, "kind", prefix) or IndexKind.INDEX, IndexKind)
    packages = file.get_texts(entry, "packages", prefix)
    for package in packages:
        if not DISTRIBUTION.fullmatch(package):
            file.fail(f"{prefix}packages", f"{package!r} is not a package name: put versions in `packages`")
    return Index(name, url, tuple(sorted({canonicalize_name(package) for package in packages})), kind)


def _environment(file: TomlFile) -> tuple[tuple[str, str], ...]:
    table = file.get(file.content, "environment", dict) or {}
    for name in table:
        value = _text(file, table, name, "environment.")
        if not _VARIABLE.fullmatch(name) or value is None:
            file.fail(f"environment.{name}", "is not a valid variable name")
        if holds_secret(name, value):
            file.fail(
                f"environment.{name}",
                "would write a secret to the image and its definition, where others can read it",
                fix=f"Remove it. `ctk run` passes {name} from your environment, `ctk sbatch --env "
                f"{name}` from the job's.",
            )
        if found := problem(name, value):
            file.fail(f"environment.{name}", found[0], fix=found[1])
    return tuple(table.items())


def _job(file: TomlFile) -> JobDefaults:
    table = file.get(file.content, "job", dict) or {}
    file.check_keys(table, ("command", *_JOB_OPTIONS, "binds"), "job.")
    readers: dict[type, Callable[[TomlFile, Mapping[str, Any], str, str], str | int | None]]
    readers = {str: _text, int: _number, Gpus: _gpus}
    values = {key: readers[form](file, table, key, "job.") for key, form in _JOB_OPTIONS.items()}
    return JobDefaults(
        command=_command(file, table),
        resources={key: value for key, value in values.items() if value is not None},
        binds=file.get_texts(table, "binds", "job."),
    )


def _number(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str) -> int | None:
    value: int | None = file.get(table, key, int, prefix)
    if value is not None and value < 1:
        file.fail(f"{prefix}{key}", f"should be at least 1, not {value}")
    return value


def _gpus(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str) -> int | str | None:
    value = table.get(key)
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        file.fail(
            f"{prefix}{key}", f'should be a number such as 1, or a type and a number such as "tesla:1", not {value!r}'
        )
    return value


def _command(file: TomlFile, table: Mapping[str, Any]) -> tuple[str, ...]:
    command = table.get("command", [])
    if isinstance(command, str):
        try:
            return tuple(shlex.split(command))
        except ValueError as error:
            file.fail("job.command", f"is not a command line: {error}")
    return file.get_texts(table, "command", "job.")


def _required_verdict(file: TomlFile) -> Verdict | None:
    table = file.get(file.content, "require", dict) or {}
    file.check_keys(table, ("verdict",), "require.")
    verdict = _text(file, table, "verdict", "require.")
    return None if verdict is None else _one_of(file, "require.verdict", verdict, REQUIRABLE)


def _import_skip(file: TomlFile) -> tuple[str, ...]:
    from packaging.utils import canonicalize_name

    table = file.get(file.content, "imports", dict) or {}
    file.check_keys(table, ("skip",), "imports.")
    listed = file.get_texts(table, "skip", "imports.")
    for name in listed:
        if not DISTRIBUTION.fullmatch(name):
            file.fail("imports.skip", f"{name!r} is not a package name: leave out the version")
    return tuple(sorted({canonicalize_name(name) for name in listed}))


def _text(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str = "") -> str | None:
    value: str | None = file.get(table, key, str, prefix)
    if value is not None:
        try:
            one_line(value, "the value")
        except WrongInput as error:
            file.fail(f"{prefix}{key}", error.message)
    return value


def _one_of(file: TomlFile, key: str, value: str | None, known: Iterable[Word]) -> Word:
    words = list(known)
    if value not in words:
        file.fail(key, f'should be one of {", ".join(words)}, not "{value}".{did_you_mean(value or "", words)}')
    return words[words.index(value)]
