"""Values of the TOML files of recipes and bases: read and checked, every mistake named with file and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.support.errors import WrongInput
from toolkit.support.text import did_you_mean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.support.tomlfile import TomlFile

Word = TypeVar("Word", bound=str)

# The name of a recipe or a base.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
NAME_HINT = "use lower-case letters, digits, dots, hyphens and underscores"
APT_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?")  # Debian policy 5.6.1, =version


def text_of(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str = "") -> str | None:
    """table[key], one line of text; None if it is absent."""
    value: str | None = file.get(table, key, str, prefix)
    if value is not None:
        try:
            one_line(value, "the value")
        except WrongInput as error:
            file.fail(f"{prefix}{key}", error.message)
    return value


def one_of(file: TomlFile, key: str, value: str | None, known: Iterable[Word]) -> Word:
    """The word of `known` that `value` is."""
    words = list(known)
    if value not in words:
        file.fail(key, f'should be one of {", ".join(words)}, not "{value}".{did_you_mean(value or "", words)}')
    return words[words.index(value)]


def apt_packages(file: TomlFile, table: Mapping[str, Any], prefix: str = "") -> tuple[str, ...]:
    """The key `apt` of a recipe or a base."""
    packages = file.get_texts(table, "apt", prefix)
    for package in packages:
        if not APT_PACKAGE.fullmatch(package):
            file.fail(f"{prefix}apt", f"{package!r} is not the name of a Debian package")
    return packages
