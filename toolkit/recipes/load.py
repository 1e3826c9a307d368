"""From `NAME.toml` to Recipe: every key checked, every mistake named with file and line."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from toolkit.recipes.architectures import parse_architecture
from toolkit.recipes.environment import problem
from toolkit.recipes.fields import apt_packages, one_of, text_of
from toolkit.recipes.indexes import NAME as INDEX_NAME
from toolkit.recipes.indexes import credentials_variable, name_of, web_address
from toolkit.recipes.model import REQUIRABLE, FileCopy, Index, IndexKind, JobDefaults, Recipe, Target
from toolkit.recipes.references import named_base
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput
from toolkit.support.paths import user_path
from toolkit.support.redaction import redact
from toolkit.support.secret_words import describe, find_secret, holds_secret
from toolkit.support.text import one_line
from toolkit.support.tomlfile import TomlFile, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolkit.recipes.model import Base
    from toolkit.support.findings import Verdict

DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")  # PEP 508
_NOT_IN_URL = re.compile(r"[\s\"'`$\\]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

RECIPE_KEYS = (
    *("description", "group", "base", "apt", "packages", "index", "post", "files", "environment", "job", "require"),
    *("imports", "target", "not_secret", "lock", "check"),
)
_AS_LIST = 'Write each word as a text of its own: command = ["python", "-c", "import timm"].'
_JOB_OPTIONS = {key: option.in_recipe for key, option in OPTIONS.items() if option.in_recipe}


def load_recipe(path: Path, bases: Mapping[str, Base], *, base: Base | None = None) -> Recipe:
    """Read a recipe. `base` replaces the one that it names. Raises WrongInput with file, line and key."""
    file = read_toml(path)
    table = file.content
    file.check_keys(table, RECIPE_KEYS)
    _refuse_secrets(file)
    return Recipe(
        name=path.stem,
        path=path,
        base=base or _named_base(file, bases),
        description=text_of(file, table, "description") or "",
        group=text_of(file, table, "group") or "",
        apt=apt_packages(file, table),
        packages=_packages(file),
        post=file.get(table, "post", str) or "",
        files=tuple(_file_copy(file, entry, number) for number, entry in enumerate(_tables(file, "files"), 1)),
        environment=_environment(file),
        job=_job(file),
        verdict=_required_verdict(file),
        indexes=_indexes(file),
        import_skip=_import_skip(file),
        target=_target(file),
        prefer=_preferred(file),
        rebased=base is not None,
        text=file.text,
        not_secret=file.get_texts(table, "not_secret"),
        check=_check(file),
    )


def _named_base(file: TomlFile, bases: Mapping[str, Base]) -> Base:
    name = text_of(file, file.content, "base")
    if name is None:
        file.fail("base", "is missing: name the base to start from", fix="`ctk bases` lists them.")
    try:
        return named_base(name, bases, file.path.parent.absolute())
    except WrongInput as error:
        file.fail("base", error.message, fix=error.fix)


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


def _tables(file: TomlFile, key: str) -> list[dict[str, Any]]:
    entries = file.get(file.content, key, list) or []
    for entry in entries:
        if not isinstance(entry, dict):
            file.fail(key, f"should be [[{key}]] tables, not {entry!r}")
    return entries


def _file_copy(file: TomlFile, entry: Mapping[str, Any], number: int) -> FileCopy:
    prefix = f"files[{number}]."
    file.check_keys(entry, ("from", "to"), prefix)
    source, target = text_of(file, entry, "from", prefix), text_of(file, entry, "to", prefix)
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
    url = text_of(file, entry, "url", prefix) or ""
    parts = web_address(url)
    if parts is None or _NOT_IN_URL.search(url):
        file.fail(f"{prefix}url", "should be an http or https URL")
    name = text_of(file, entry, "name", prefix) or name_of(url)
    if not INDEX_NAME.fullmatch(name):
        file.fail(f"{prefix}name", f"should contain only lower-case letters, digits and dashes, not {name!r}")
    if "@" in parts.netloc or parts.query:
        variable = credentials_variable(name)
        file.fail(
            f"{prefix}url",
            "contains credentials, which would end up in the lock and the image",
            fix=f"Set {variable}_USERNAME and {variable}_PASSWORD where you run ctk, or write them to ~/.netrc.",
        )
    kind = one_of(file, f"{prefix}kind", text_of(file, entry, "kind", prefix) or IndexKind.INDEX, IndexKind)
    packages = file.get_texts(entry, "packages", prefix)
    for package in packages:
        if not DISTRIBUTION.fullmatch(package):
            file.fail(f"{prefix}packages", f"{package!r} is not a package name: put versions in `packages`")
    return Index(name, url, tuple(sorted({canonicalize_name(package) for package in packages})), kind)


def _refuse_secrets(file: TomlFile) -> None:
    """What a recipe says gets into the image, its definition and the build's log, a job's command into a script."""
    allowed = file.get_texts(file.content, "not_secret")
    job = file.get(file.content, "job", dict) or {}
    check = file.get(file.content, "check", dict) or {}
    command = job.get("command") or ()
    texts = {
        "description": (redact(str(file.content.get("description", ""))),),
        "post": (file.content.get("post"),),
        "job.command": command if isinstance(command, list) else (command,),
        "check.command": file.get(check, "command", list, "check.", fix=_AS_LIST) or (),
    }
    for key, words in texts.items():
        found = find_secret([word for word in words if isinstance(word, str)], allowed)
        if found is not None:
            file.fail(
                key,
                f"has a secret ({describe(found)}), which others could read in the image, its definition or a script",
                fix="Let `post` read a file that is not copied into the image, or the program a variable of its "
                f'environment (`ctk sbatch --env NAME`).\nIf it is no secret: not_secret = ["{found}"] in the recipe.',
            )


def _environment(file: TomlFile) -> tuple[tuple[str, str], ...]:
    table = file.get(file.content, "environment", dict) or {}
    allowed = file.get_texts(file.content, "not_secret")
    for name in table:
        value = text_of(file, table, name, "environment.")
        if not _VARIABLE.fullmatch(name) or value is None:
            file.fail(f"environment.{name}", "is not a valid variable name")
        if name not in allowed and holds_secret(name, value):
            file.fail(
                f"environment.{name}",
                "would write a secret to the image and its definition, where others can read it",
                fix=f"Remove it. `ctk run` passes {name} from your environment, `ctk sbatch --env "
                f'{name}` from the job\'s. If it is no secret: not_secret = ["{name}"] in the recipe.',
            )
        if found := problem(name, value):
            file.fail(f"environment.{name}", found[0], fix=found[1])
    return tuple(table.items())


def _job(file: TomlFile) -> JobDefaults:
    table = file.get(file.content, "job", dict) or {}
    file.check_keys(table, ("command", *_JOB_OPTIONS, "binds", "modules", "cluster"), "job.")
    readers: dict[type, Callable[[TomlFile, Mapping[str, Any], str, str], str | int | None]]
    readers = {str: text_of, int: _number, Gpus: _gpus}
    values = {key: readers[form](file, table, key, "job.") for key, form in _JOB_OPTIONS.items()}
    return JobDefaults(
        command=_command(file, table),
        resources={key: value for key, value in values.items() if value is not None},
        binds=file.get_texts(table, "binds", "job."),
        modules=file.get_texts(table, "modules", "job."),
        cluster=text_of(file, table, "cluster", "job."),
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


def _check(file: TomlFile) -> tuple[str, ...]:
    table = file.get(file.content, "check", dict)
    if table is None:
        return ()
    file.check_keys(table, ("command",), "check.")
    command = file.get_texts(table, "command", "check.")
    if not command or not command[0] or any("\0" in word for word in command):
        file.fail("check.command", "should be the words of a command", fix=_AS_LIST)
    return command


def _required_verdict(file: TomlFile) -> Verdict | None:
    table = file.get(file.content, "require", dict) or {}
    file.check_keys(table, ("verdict",), "require.")
    verdict = text_of(file, table, "verdict", "require.")
    return None if verdict is None else one_of(file, "require.verdict", verdict, REQUIRABLE)


def _target(file: TomlFile) -> Target:
    """What GPUs and drivers mean is checked where they are used: ctk's data about GPUs lies above this module."""
    table = file.get(file.content, "target", dict) or {}
    file.check_keys(table, ("gpu", "driver", "arch"), "target.")
    return Target(
        _text_or_texts(file, table, "gpu"), text_of(file, table, "driver", "target."), _architectures(file, table)
    )


def _text_or_texts(file: TomlFile, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key)
    if value is not None and not isinstance(value, (str, list)):
        file.fail(f"target.{key}", f"should be text in quotes, or a list of such texts, not {value!r}")
    return (value,) if isinstance(value, str) else file.get_texts(table, key, "target.")


def _architectures(file: TomlFile, table: Mapping[str, Any]) -> tuple[str, ...]:
    named = _text_or_texts(file, table, "arch")
    try:
        return tuple(dict.fromkeys(map(parse_architecture, named)))
    except WrongInput as error:
        file.fail("target.arch", error.message, fix=error.fix)


def _import_skip(file: TomlFile) -> tuple[str, ...]:
    from packaging.utils import canonicalize_name

    table = file.get(file.content, "imports", dict) or {}
    file.check_keys(table, ("skip",), "imports.")
    listed = file.get_texts(table, "skip", "imports.")
    for name in listed:
        if not DISTRIBUTION.fullmatch(name):
            file.fail("imports.skip", f"{name!r} is not a package name: leave out the version")
    return tuple(sorted({canonicalize_name(name) for name in listed}))


def _preferred(file: TomlFile) -> tuple[str, ...]:
    from toolkit.recipes.requirements import exact_version

    table = file.get(file.content, "lock", dict) or {}
    file.check_keys(table, ("prefer",), "lock.")
    lines = file.get_texts(table, "prefer", "lock.")
    for line in lines:
        if exact_version(line) is None:
            file.fail("lock.prefer", f'"{line}" is not an exact version, such as numpy==1.24.4')
    return lines
