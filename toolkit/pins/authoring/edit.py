"""Changing a recipe's packages without losing a comment of the user who wrote it."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from toolkit.recipes.fields import APT_PACKAGE
from toolkit.recipes.load import RECIPE_KEYS
from toolkit.recipes.model import IndexKind, Target
from toolkit.recipes.requirements import how_to_write
from toolkit.support.errors import WrongInput
from toolkit.support.files import refuse_link, write_atomically
from toolkit.support.text import did_you_mean, one_line
from toolkit.support.tomlfile import read_toml, with_line_ends_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tomlkit import TOMLDocument
    from tomlkit.items import Array

    from toolkit.recipes.model import Index


PACKAGES, APT = "packages", "apt"


@dataclass(frozen=True, slots=True)
class Edit:
    """A recipe as it would be: `entries` of the edited list, the `changed` ones of them, and the whole `text`.

    `unskipped` are the packages (normalized names) that went from `skip` of `[imports]` with the changed ones.
    `preferred` are versions that are new in `[lock] prefer`, `prefer` is all of it as it would be.
    """

    entries: tuple[str, ...]
    changed: tuple[str, ...]
    text: str
    unskipped: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    prefer: tuple[str, ...] | None = None


def added(path: Path, packages: Sequence[str], key: str = PACKAGES) -> Edit:
    """The recipe at `path` with more packages; those of the same name are replaced. `key` is the list to change.

    Raises WrongInput if one is not a requirement, or not the name of a Debian package.
    """
    wanted: dict[str, list[str]] = {}
    for line in dict.fromkeys(check_packages(packages, key)):
        wanted.setdefault(_name(line, key), []).append(line)
    document, array = _open(path, key)
    changed: list[str] = []
    for name, lines in wanted.items():
        places = [place for place, old in enumerate(array) if _name(str(old), key) == name]
        if [str(array[place]) for place in places] == lines:
            continue
        for place, line in zip(places, lines, strict=False):
            array[place] = line
        for line in lines[len(places) :]:
            _append(array, line)
        for place in reversed(places[len(lines) :]):
            del array[place]
        changed += lines
    return _edit(document, array, changed)


def removed(path: Path, packages: Sequence[str], key: str = PACKAGES) -> Edit:
    """The recipe at `path` without these packages, in any version, and without them in `skip` of `[imports]`.

    Raises WrongInput if one is not in the recipe.
    """
    document, array = _open(path, key)
    there = {_name(str(line), key) for line in array}
    names = {_name(package, key): package for package in check_packages(packages, key)}
    for name, package in names.items():
        if name not in there:
            raise WrongInput(f"{path} does not list {package}.{did_you_mean(name, there)}")
    # A package may be listed several times, each for another Python.
    gone = [str(line) for line in array if _name(str(line), key) in names]
    for line in gone:
        array.remove(line)
    unskipped = _unskip(document, names) if key == PACKAGES else ()
    return replace(_edit(document, array, gone), unskipped=unskipped)


def _unskip(document: TOMLDocument, names: Iterable[str]) -> tuple[str, ...]:
    """Remove `names` from `skip` of `[imports]`, and what that leaves empty; those that were there."""
    from tomlkit.items import Array

    table = document.get("imports")
    if not isinstance(table, MutableMapping) or not isinstance(array := table.get("skip"), Array):
        return ()
    gone = [str(line) for line in array if canonicalize_name(str(line)) in names]
    for line in gone:
        array.remove(line)
    if gone and not array:
        del table["skip"]
    if gone and not table:
        del document["imports"]
    return tuple(map(canonicalize_name, gone))


def skipping(path: Path, names: Sequence[str]) -> Edit:
    """The recipe at `path` with these packages, by their normalized names, in `skip` of `[imports]`."""
    import tomlkit
    from tomlkit.container import Container
    from tomlkit.items import AbstractTable

    document = _read(path)
    table = document.setdefault("imports", tomlkit.table())
    if not isinstance(table, AbstractTable | Container):  # what a dotted key makes is a container
        raise WrongInput(f"{path}: imports: should be a table")
    array = _array(table, "skip", f"{path}: imports.skip")
    there = {canonicalize_name(str(line)) for line in array}
    changed = [name for name in dict.fromkeys(names) if name not in there]
    for name in changed:
        _append(array, name)
    return _edit(document, array, changed)


def preferring(edit: Edit, lines: Sequence[str]) -> Edit:
    """An edit of a recipe that also prefers the versions in `lines`; they replace those of the same packages."""
    import tomlkit

    if not lines:
        return edit
    document = tomlkit.parse(edit.text)
    table = document.setdefault("lock", tomlkit.table())
    array = _array(table, "prefer", "lock.prefer")
    before = [str(line) for line in array]
    names = {_name(line, PACKAGES) for line in lines}
    for line in before:
        if _name(line, PACKAGES) in names and line not in lines:
            array.remove(line)
    new = [line for line in lines if line not in before]
    for line in new:
        array.add_line(line)
    array.multiline(True)
    return replace(edit, text=tomlkit.dumps(document), preferred=tuple(new), prefer=tuple(map(str, array)))


def asking_for_gpu(edit: Edit) -> Edit:
    """An edit of a recipe that changes `[job] gpus` from 0 to 1."""
    import tomlkit

    document = tomlkit.parse(edit.text)
    document["job"]["gpus"] = 1
    return replace(edit, text=tomlkit.dumps(document))


def write_edit(edit: Edit, path: Path) -> None:
    """Write an edit to the recipe at `path`; nothing if it changes nothing."""
    if edit.changed or edit.preferred:
        # A symlink to a recipe stays a symlink (`_open` has checked its target): the target is replaced.
        target = Path(os.path.realpath(path))
        write_atomically(target, with_line_ends_of(target, edit.text), keep_mode=True)


def _edit(document: TOMLDocument, array: Array, changed: Sequence[str]) -> Edit:
    import tomlkit

    return Edit(tuple(map(str, array)), tuple(changed), tomlkit.dumps(document))


def recipe_text(
    *,
    base: str,
    packages: Iterable[str],
    description: str = "",
    command: Sequence[str] | None = None,
    gpus: int = 1,
    indexes: Iterable[Index] = (),
    files: Iterable[tuple[str, str]] = (),
    post: str = "",
    target: Target | None = None,
    skip: Sequence[str] = (),
    prefer: Sequence[str] = (),
) -> str:
    """A new recipe, as a user would write it.

    `command` None is the usual one, () none at all; `gpus` is what a job of it asks for, 0 for the CPU; `files` are
    (from, to) of `[[files]]`; `skip` are packages that no build imports; `prefer` are versions that a lock takes where
    it can.
    """
    import tomlkit

    document = tomlkit.document()
    if description:
        document["description"] = description
    document["base"] = base
    array = tomlkit.array()
    array.extend(packages)
    document["packages"] = array.multiline(len(array) > 4)
    if post:
        document["post"] = post
    for key, entries in (
        ("index", map(_index_entry, indexes)),
        ("files", ({"from": source, "to": target} for source, target in files)),
    ):
        tables = tomlkit.aot()
        for entry in entries:
            tables.append(tomlkit.item(entry))
        if tables:
            document[key] = tables
    if target is not None:
        machine = {"gpu": list(target.gpus), "driver": target.driver, "arch": list(target.architectures)}
        if known := {key: value for key, value in machine.items() if value}:
            document["target"] = known
    if skip:
        document["imports"] = {"skip": list(skip)}
    job = tomlkit.table()
    if command is None:
        command = ("python", "train.py")
    if command:
        job["command"] = list(command)
    job["gpus"] = gpus
    job["time"] = "4:00:00"
    document["job"] = job
    if prefer:
        versions = tomlkit.array()
        versions.extend(prefer)
        document["lock"] = {"prefer": versions.multiline(True)}
    return tomlkit.dumps(document)


def _index_entry(index: Index) -> dict[str, str | list[str]]:
    entry: dict[str, str | list[str]] = {"name": index.name, "url": index.url}
    if index.kind != IndexKind.INDEX:
        entry["kind"] = index.kind
    if index.packages:
        entry["packages"] = list(index.packages)
    return entry


def _open(path: Path, key: str) -> tuple[TOMLDocument, Array]:
    document = _read(path)
    return document, _array(document, key, f"{path}: {key}")


def _array(table: MutableMapping[str, Any], key: str, where: str) -> Array:
    """The list `key` of a table, which is added if it is missing."""
    import tomlkit
    from tomlkit.items import Array

    if key not in table:
        table[key] = tomlkit.array()  # of a document, tomlkit puts it before the first table
    array = table[key]
    if not isinstance(array, Array):
        raise WrongInput(f"{where}: should be a list of strings")
    return array


def _read(path: Path) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import ParseError

    text = read_toml(path).text
    try:
        document = tomlkit.parse(text)
    except ParseError as error:  # tomllib has read it: tomlkit knows TOML 1.0 only in part
        raise WrongInput(f"cannot read {path}: {error}") from error
    if path.is_symlink() and not _is_own_recipe(path, document):
        refuse_link(path)
    return document


def _is_own_recipe(path: Path, document: TOMLDocument) -> bool:
    """Whether a symlink may be followed: its target is a file of this user that has only the keys of a recipe.

    Users share a recipe among projects by a symlink. A symlink in a cloned repository may point to the settings of
    any other program, which must not be changed.
    """
    return "base" in document and set(document) <= set(RECIPE_KEYS) and path.stat().st_uid == os.geteuid()


def _append(array: Array, line: str) -> None:
    """At the end, on a line of its own where the others have one."""
    if "\n" in array.as_string():
        array.add_line(line)
    else:
        array.append(line)


def check_packages(packages: Iterable[str], key: str = PACKAGES) -> list[str]:
    """The entries as they are. Raises WrongInput for the first that is no requirement, or no Debian package."""
    found = []
    for package in packages:
        if key == APT and not APT_PACKAGE.fullmatch(package):
            raise WrongInput(f"{package!r} is not the name of a Debian package")
        try:
            _ = key == APT or Requirement(one_line(package, "a requirement"))
        except InvalidRequirement as error:
            meant = how_to_write(package)
            reason = "" if meant else f": {str(error).splitlines()[0]}"
            raise WrongInput(f"{package!r} is not a package requirement{reason}", fix=meant) from error
        found.append(package)
    return found


def _name(line: str, key: str) -> str:
    if key == APT:
        return line.partition("=")[0]
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return line
