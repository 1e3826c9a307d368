"""Changing a recipe's packages without losing a comment of the person who wrote it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from toolkit.recipes.load import RECIPE_KEYS
from toolkit.support.errors import WrongInput
from toolkit.support.files import refuse_link, write_atomically
from toolkit.support.text import did_you_mean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tomlkit import TOMLDocument
    from tomlkit.items import Array

    from toolkit.recipes.model import Index


def add_packages(path: Path, packages: Sequence[str]) -> tuple[str, ...]:
    """Add requirements to the recipe at `path`; those of the same name are replaced. Returns what changed.

    Raises WrongInput where one is no requirement; then nothing is written.
    """
    wanted: dict[str, list[str]] = {}
    for line in dict.fromkeys(check_packages(packages)):
        wanted.setdefault(_name(line), []).append(line)
    document, array = _open(path)
    changed: list[str] = []
    for name, lines in wanted.items():
        places = [place for place, old in enumerate(array) if _name(str(old)) == name]
        if [str(array[place]) for place in places] == lines:
            continue
        for place, line in zip(places, lines, strict=False):
            array[place] = line
        for line in lines[len(places) :]:
            _append(array, line)
        for place in reversed(places[len(lines) :]):
            del array[place]
        changed += lines
    _write(path, document, changed)
    return tuple(changed)


def remove_packages(path: Path, packages: Sequence[str]) -> tuple[str, ...]:
    """Take packages out of the recipe at `path`, whatever version it asks for. Returns the lines that were there.

    Raises WrongInput where one is not in the recipe; then nothing is written.
    """
    names = require_packages(path, packages)
    document, array = _open(path)
    # One package may stand there several times, each for another Python.
    gone = [str(line) for line in array if _name(str(line)) in names]
    for line in gone:
        array.remove(line)
    _write(path, document, gone)
    return tuple(gone)


def require_packages(path: Path, packages: Sequence[str]) -> tuple[str, ...]:
    """The names of `packages`. Raises WrongInput for the first that the recipe at `path` does not ask for."""
    there = {_name(str(line)) for line in _open(path)[1]}
    names = [_name(line) for line in check_packages(packages)]
    for package, name in zip(packages, names, strict=True):
        if name not in there:
            raise WrongInput(f"{path} does not ask for {package}.{did_you_mean(name, there)}")
    return tuple(dict.fromkeys(names))


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
) -> str:
    """A new recipe, as a user would write it.

    `command` None is the usual one, () none at all; `gpus` is what a job of it asks for, 0 for the CPU; `files` are
    (from, to) of `[[files]]`.
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
    for key, entries in (("index", map(_index_entry, indexes)), ("files", ({"from": a, "to": b} for a, b in files))):
        tables = tomlkit.aot()
        for entry in entries:
            tables.append(tomlkit.item(entry))
        if tables:
            document[key] = tables
    job = tomlkit.table()
    if command is None:
        command = ("python", "train.py")
    if command:
        job["command"] = list(command)
    job["gpus"] = gpus
    job["time"] = "4:00:00"
    document["job"] = job
    return tomlkit.dumps(document)


def _index_entry(index: Index) -> dict[str, str | list[str]]:
    entry: dict[str, str | list[str]] = {"name": index.name, "url": index.url}
    if index.kind != "index":
        entry["kind"] = index.kind
    if index.packages:
        entry["packages"] = list(index.packages)
    return entry


def _open(path: Path) -> tuple[TOMLDocument, Array]:
    import tomlkit
    from tomlkit.exceptions import ParseError
    from tomlkit.items import Array

    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ParseError) as error:
        raise WrongInput(f"cannot read {path}: {error}") from error
    if path.is_symlink() and not _is_own_recipe(path, document):
        refuse_link(path)
    if "packages" not in document:
        document["packages"] = tomlkit.array()  # tomlkit puts it before the first table
    array = document["packages"]
    if not isinstance(array, Array):
        raise WrongInput(f"{path}: packages: should be a list of texts in quotes")
    return document, array


def _is_own_recipe(path: Path, document: TOMLDocument) -> bool:
    """Whether a link may be followed: it leads to a file of this user that holds what a recipe does, and no more.

    People share one recipe among projects by a link. A link in a cloned repository may lead to the settings of any
    other program, which nobody wants changed.
    """
    return "base" in document and set(document) <= set(RECIPE_KEYS) and path.stat().st_uid == os.geteuid()


def _append(array: Array, line: str) -> None:
    """At the end, on a line of its own where the others have one."""
    if "\n" in array.as_string():
        array.add_line(line)
    else:
        array.append(line)


def _write(path: Path, document: TOMLDocument, changed: Sequence[str]) -> None:
    if changed:
        import tomlkit

        # A link to a recipe stays a link (`_open` has looked where it leads): the recipe itself is replaced.
        write_atomically(Path(os.path.realpath(path)), tomlkit.dumps(document), keep_mode=True)


def check_packages(packages: Iterable[str]) -> list[str]:
    """The requirements as they are. Raises WrongInput for the first that is none."""
    found = []
    for package in packages:
        try:
            Requirement(one_line(package, "a requirement"))
        except InvalidRequirement as error:
            raise WrongInput(f"{package!r} is not a package requirement: {str(error).splitlines()[0]}") from error
        found.append(package)
    return found


def _name(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return line
