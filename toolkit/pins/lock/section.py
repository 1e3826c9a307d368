"""One architecture's section of a lock file: a lock as lines of TOML, and back."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.pins.lock.document import lock_document
from toolkit.pins.lock.model import Displaced, Held, Inventoried, Lock, LockedBase, LockedPackage, SourceBuild
from toolkit.pins.lock.protected import Ban, Bound, Pin, ProtectedSet
from toolkit.recipes.indexes import NAME as INDEX_NAME
from toolkit.recipes.model import Bootstrap, Index, IndexKind
from toolkit.recipes.repositories import is_repository, why_unlockable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolkit.support.tomlfile import TomlFile

Word = TypeVar("Word", Bootstrap, Inventoried)

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_ONE_WORD = re.compile(r"[^\s\x00-\x1f\x7f\"'`$\\]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


# ---- Writing


def section_lines(lock: Lock) -> Iterator[str]:
    """The lines of a section, below its header and its hash."""
    document, architecture = lock_document(lock), lock.architecture
    yield from _keys(document, "input", "exclude_newer", "asked", "notes")
    yield ""
    yield "# Protected packages of the base."
    yield from _keys(document, "protected", "bounds", "forbidden")
    yield ""
    yield "# Packages to add, pinned to these files."
    yield from _keys(document, "packages", "held_back")
    if document["preferred"] or document["displaced"]:
        yield ""
        yield "# Versions that the recipe prefers, and those that are not possible."
        yield from _keys(document, "preferred", "displaced")
    yield ""
    yield "# Packages of the base."
    yield from _keys(document, "present")
    yield ""
    yield f"[{architecture}.base]"
    yield from _keys(document["base"])
    if document["installer"]:
        yield ""
        yield f"[{architecture}.installer]  # the pip of the image cannot install all of the files"
        yield from _keys(document["installer"])
    if document["added"]:
        yield ""
        yield f"[{architecture}.added]  # the GPU frameworks among the packages to add, protected like those of a base"
        yield from _keys(document["added"])
    for key in ("indexes", "builds"):
        for table in document[key]:
            yield ""
            yield f"[[{architecture}.{key}]]"
            yield from _keys(table)


def _keys(table: Mapping[str, Any], *chosen: str) -> Iterator[str]:
    """The chosen keys of a table, else all: a list with one value a line, and nothing for what is not known."""
    for key in chosen or table:
        value = table[key]
        if isinstance(value, list) and value:
            yield f"{key} = ["
            yield from (f"  {_value(item)}," for item in value)
            yield "]"
        elif value is not None:
            yield f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    """A value in one line. A table leaves out what is not known: TOML has no null."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(known)}" for key, known in value.items() if known is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # JSON's texts are TOML's, but for DEL, which TOML requires to be escaped, too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---- Reading


def read_section(file: TomlFile, architecture: str) -> Lock:
    """The lock of a section. Raises WrongInput with the line if it is not as this version of ctk writes it."""
    table = file.get(file.content, architecture, dict) or {}
    file.check_keys(
        table,
        (
            "content", "input", "exclude_newer", "asked", "notes", "protected", "bounds", "forbidden", "packages",
            "held_back", "present", "base", "installer", "builds", "indexes", "added", "preferred", "displaced",
        ),
        f"{architecture}.",
    )  # fmt: skip
    installer = file.get(table, "installer", dict)
    return Lock(
        recipe=_text(file, file.content, "recipe"),
        input=_text(file, table, "input"),
        base=_base(file, file.get(table, "base", dict) or {}, architecture),
        asked=file.get_texts(table, "asked"),
        notes=file.get_texts(table, "notes"),
        protected=_protected(file, table),
        own=_protected(file, file.get(table, "added", dict) or {}),
        packages=_read_packages(file, table),
        builds=tuple(
            SourceBuild(
                file.get_texts(build, "sources"), file.get_texts(build, "requires"), _read_packages(file, build)
            )
            for build in _tables(file, table, "builds")
        ),
        installer=_read_package(file, installer) if installer else None,
        held=tuple(
            Held(*_texts(file, held, "name", "version", "newest", "why")) for held in _tables(file, table, "held_back")
        ),
        preferred=file.get_texts(table, "preferred"),
        displaced=tuple(
            Displaced(_text(file, found, "name"), file.get_texts(found, "versions"), _text(file, found, "why"))
            for found in _tables(file, table, "displaced")
        ),
        present=file.get_texts(table, "present"),
        exclude_newer=file.get(table, "exclude_newer", str),
        indexes=tuple(_index(file, index) for index in _tables(file, table, "indexes")),
    )


def _protected(file: TomlFile, table: Mapping[str, Any]) -> ProtectedSet:
    return ProtectedSet(
        tuple(Pin(*_texts(file, pin, "name", "version", "why")) for pin in _tables(file, table, "protected")),
        tuple(Bound(*_texts(file, bound, "name", "specifier", "why")) for bound in _tables(file, table, "bounds")),
        tuple(Ban(*_texts(file, ban, "name", "why")) for ban in _tables(file, table, "forbidden")),
    )


def _base(file: TomlFile, table: Mapping[str, Any], architecture: str) -> LockedBase:
    prefix = f"{architecture}.base."
    file.check_keys(table, tuple(LockedBase.__dataclass_fields__), prefix)
    required = {key: _text(file, table, key) for key in ("name", "python", "architecture")}
    if required["architecture"] != architecture:
        file.fail(f"{prefix}architecture", f"should be {architecture}, not {required['architecture']!r}")
    optional = {key: file.get(table, key, str, prefix) for key in ("reference", "digest", "glibc", "executable")}
    bootstrap = _word(file, table, "bootstrap", Bootstrap, prefix)
    inventory = _word(file, table, "inventory", Inventoried, prefix)
    return LockedBase(bootstrap=bootstrap, inventory=inventory, **required, **optional)


def _word(file: TomlFile, table: Mapping[str, Any], key: str, words: type[Word], prefix: str) -> Word:
    value = _text(file, table, key)
    if value not in list(words):
        file.fail(f"{prefix}{key}", f"should be one of {', '.join(words)}, not {value!r}")
    return words(value)


def _read_packages(file: TomlFile, table: Mapping[str, Any]) -> tuple[LockedPackage, ...]:
    return tuple(_read_package(file, package) for package in _tables(file, table, "packages"))


def _read_package(file: TomlFile, table: Mapping[str, Any]) -> LockedPackage:
    """These values are used in requirement files and command lines: only names, versions and hashes are allowed."""
    name, version = _texts(file, table, "name", "version")
    path, sha256, url, replaces = (file.get(table, key, str) for key in ("file", "sha256", "url", "replaces"))
    words = _NAME.fullmatch(name) and _ONE_WORD.fullmatch(version) and (url is None or _ONE_WORD.fullmatch(url))
    if path is None:
        source = is_repository(url) and why_unlockable(url or "") is None and sha256 is None
    else:
        good_hash = sha256 is None or _SHA256.fullmatch(sha256) is not None
        source = _ONE_WORD.fullmatch(path) is not None and "/" not in path and good_hash
    if not (words and source):
        file.fail("packages", f"{name!r} is not a valid package entry")
    return LockedPackage(name, version, path, sha256, url, replaces, file.get_texts(table, "required_by"))


def _index(file: TomlFile, table: Mapping[str, Any]) -> Index:
    name, url, kind = _texts(file, table, "name", "url", "kind")
    if not INDEX_NAME.fullmatch(name) or not _ONE_WORD.fullmatch(url) or kind not in list(IndexKind):
        file.fail("indexes", f"{name!r} is not a valid index entry")
    return Index(name, url, file.get_texts(table, "packages"), IndexKind(kind))


def _tables(file: TomlFile, table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = file.get(table, key, list) or []
    if not all(isinstance(item, dict) for item in found):
        file.fail(key, "should be a list of tables")
    return found


def _text(file: TomlFile, table: Mapping[str, Any], key: str) -> str:
    value: str | None = file.get(table, key, str)
    if value is None:
        file.fail(key, "is missing")
    return value


def _texts(file: TomlFile, table: Mapping[str, Any], *keys: str) -> list[str]:
    return [_text(file, table, key) for key in keys]
