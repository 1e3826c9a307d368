"""Read TOML files of users, with errors that give file, line and key."""

from __future__ import annotations

import datetime
import json
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from toolkit.support.errors import WrongInput
from toolkit.support.files import read_small
from toolkit.support.text import did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TABLE = re.compile(r"^\s*\[\[?[^\[\]]+\]\]?\s*(#.*)?$")
_DEEPEST = 50
# tomllib takes memory with the square of a key's parts: 40 GB for 200 KB.
_LONG_KEY = re.compile(rf"(?<![\w-])(?:(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){{{_DEEPEST}}}")
_NAMES = {str: "text in quotes", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A TOML file that was read: its content, and its text to find lines in."""

    path: Path
    text: str
    content: dict[str, Any]

    def fail(self, key: str, reason: str, *, fix: str | None = None) -> NoReturn:
        """Raise WrongInput with `reason` for `key` (dotted, `files[2].from`), and its line if it is found."""
        line = self.line_of(key)
        where = f"{self.path}:{line}" if line else str(self.path)
        shown = key if key.isprintable() else repr(key)
        raise WrongInput(f"{where}: {shown}: {reason}", fix=fix, code="wrong-file")

    def line_of(self, key: str) -> int | None:
        """The line of `key`, searched for in the text; None if it is not found."""
        *tables, name = [re.sub(r"\[\d+\]$", "", part) for part in key.split(".")]
        index = next((int(found) for found in re.findall(r"\[(\d+)\]", key)), 1)
        header, whole = _header(tables or [name]), _header([*tables, name])
        assignment = re.compile(rf"^\s*{_bare_or_quoted(name)}\s*=")
        # `job.gpus = 1`, or `job = { gpus = 1 }`
        dotted = rf"\.\s*{_bare_or_quoted(name)}\s*"
        inline = re.compile(rf"^\s*{_bare_or_quoted(tables[0] if tables else name)}\s*({dotted})?=")
        seen, inside, best = 0, not tables, None
        for number, line in enumerate(self.text.splitlines(), 1):
            if header.match(line):
                seen += 1
                inside = bool(tables) and seen == index
                best = number if best is None or seen == index else best
            elif _TABLE.match(line):
                inside = False
                best = number if best is None and whole.match(line) else best
            elif inside and assignment.match(line):
                return number
            elif best is None and tables and inline.match(line):
                best = number
        return best

    def check_keys(self, table: Mapping[str, Any], known: Sequence[str], prefix: str = "") -> None:
        """Refuse the first key of `table` that is not in `known`, and suggest the nearest one."""
        for key in table:
            if key not in known:
                hint = did_you_mean(key, known) or f" Known keys: {', '.join(known)}."
                self.fail(f"{prefix}{key}", f"there is no such key.{hint}")

    def get(self, table: Mapping[str, Any], key: str, kind: type, prefix: str = "", *, fix: str | None = None) -> Any:
        """table[key], which must be of `kind`; None if it is absent."""
        if key not in table:
            return None
        value = table[key]
        # In Python a bool is an int, but `gpus = true` does not mean one GPU.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fail(f"{prefix}{key}", f"should be {_NAMES[kind]}, not {_shown(value)}", fix=fix)
        return value

    def get_texts(self, table: Mapping[str, Any], key: str, prefix: str = "") -> tuple[str, ...]:
        """table[key], which must be a list of strings; () if it is absent."""
        values = self.get(table, key, list, prefix) or []
        for value in values:
            if not isinstance(value, str):
                self.fail(f"{prefix}{key}", f"should be a list of texts in quotes, but contains {_shown(value)}")
        return tuple(values)


def _shown(value: object) -> str:
    """A value about as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else repr(value)


def _header(parts: Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"^\s*\[\[?\s*" + r"\s*\.\s*".join(map(_bare_or_quoted, parts)) + r"\s*\]\]?")


def _bare_or_quoted(name: str) -> str:
    escaped = json.dumps(name, ensure_ascii=False)[1:-1]  # TOML has the escapes of JSON
    return rf"[\"']?(?:{re.escape(name)}|{re.escape(escaped)})[\"']?"


def read_toml(path: Path) -> TomlFile:
    """Read a TOML file. Raises WrongInput, with the line, if it cannot be read, is not a regular file, or not TOML."""
    try:
        text = read_small(path).decode().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise WrongInput(f"cannot read {path}: {reason}") from error
    try:
        return TomlFile(path, text, parse_toml(text))
    except ValueError as error:
        raise WrongInput(f"{path} is not TOML: {error}", code="wrong-file") from error


def with_line_ends_of(path: Path, text: str) -> str:
    """`text`, whose lines end in a newline, with the line ends of the file that it replaces: CRLF, if all have that."""
    before = read_small(path) if path.is_file() else b""
    ends = before.count(b"\n")
    return text.replace("\n", "\r\n") if 0 < ends == before.count(b"\r\n") else text


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError if it is invalid, or has what Python cannot print: it may come with a clone."""
    if _LONG_KEY.search(text):
        raise ValueError("it is nested too deeply")
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    waiting: list[tuple[Any, int]] = [(content, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("an integer has more than 64 bits")
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting += ((child, depth + 1) for child in children)
    return content
