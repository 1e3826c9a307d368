"""The lock file of a recipe: one section per architecture, each with a hash by which manual edits are detected.

The same locks give the same text, byte for byte. Writing one section leaves the others as they are.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from toolkit.pins.lock.section import read_section, section_lines
from toolkit.support.errors import WrongInput
from toolkit.support.files import write_atomically
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolkit.pins.lock.model import Lock
    from toolkit.support.tomlfile import TomlFile

SCHEMA = "ctk.lock/1"
# No value of a lock begins a line with a bracket, and the tables of a section have a dot in their header.
_HEADER = re.compile(r"^\[(\w+)\]\n", re.MULTILINE)
_CONTENT = re.compile(r'content = "sha256:([0-9a-f]{64})"\n')


def dump_locks(*locks: Lock) -> str:
    """The text of a file with the locks of one recipe, each for another architecture."""
    return _file(locks[0].recipe, {lock.architecture: _section(lock) for lock in locks})


def write_lock(lock: Lock, path: Path) -> bool:
    """Write the section of a lock unless the file has the same; return whether it was written.

    The sections of other architectures stay as they are, out of date or not. One that was edited by hand is not
    written again: no command would accept it.
    """
    there = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    others = {name: text for name, text in _sections(there).items() if _is_intact(lock.recipe, name, text)}
    text = _file(lock.recipe, {**others, lock.architecture: _section(lock)})
    if there == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text, keep_mode=True)
    return True


def load_lock(path: Path, architecture: str) -> Lock | None:
    """The lock for `architecture`; None if there is no file, or it has no section for it.

    Raises WrongInput if the file is damaged or from another ctk, or the section was edited by hand.
    """
    if not path.is_file():
        return None
    file, again = _read(path)
    section = _sections(file.text).get(architecture)
    if section is None:
        return None
    if not _is_intact(str(file.content.get("recipe")), architecture, section):
        raise WrongInput(f"{path} was edited by hand, or is damaged", fix=again, code="edited-lock")
    try:
        return read_section(file, architecture)
    except WrongInput as error:  # the hash matches: written by another version of ctk, not edited
        raise WrongInput(error.message, fix=again, code="wrong-lock") from error


def locked_architectures(path: Path) -> tuple[str, ...]:
    """The architectures that a lock file has a section for. Raises WrongInput as `load_lock` does."""
    return tuple(_sections(_read(path)[0].text))


def _read(path: Path) -> tuple[TomlFile, str]:
    """The file, and how it is written again."""
    file = read_toml(path)
    name = path.name.removesuffix(".lock.toml")
    again = f"`ctk lock {name}` regenerates it."
    if file.content.get("schema") != SCHEMA:
        raise WrongInput(f"{path} is not a lock file that this version of ctk can read", fix=again, code="wrong-lock")
    if "content" in file.content:  # the hash of a file with one lock and no sections
        raise WrongInput(f"{path} was written by an earlier ctk", fix=f"Run `ctk lock {name}`.", code="wrong-lock")
    return file, again


def _file(recipe: str, sections: Mapping[str, str]) -> str:
    head = f"# Written by `ctk lock {recipe}`. Do not edit: change the recipe, then run `ctk lock` again.\n"
    parts = (f"\n[{architecture}]\n{text}" for architecture, text in sorted(sections.items()))
    return f'{head}schema = "{SCHEMA}"\nrecipe = "{recipe}"\n{"".join(parts)}'


def _section(lock: Lock) -> str:
    body = "".join(f"{line}\n" for line in section_lines(lock))
    return f'content = "sha256:{_digest(lock.recipe, lock.architecture, body)}"\n{body}'


def _sections(text: str) -> dict[str, str]:
    """The text below the header of each section, without the empty line that separates it from the next one."""
    _, *parts = _HEADER.split(text)
    return {name: part.rstrip("\n") + "\n" for name, part in zip(parts[::2], parts[1::2], strict=True)}


def _is_intact(recipe: str, architecture: str, section: str) -> bool:
    said = _CONTENT.match(section)
    return said is not None and _digest(recipe, architecture, section[said.end() :]) == said[1]


def _digest(recipe: str, architecture: str, body: str) -> str:
    return hashlib.sha256(f"{recipe}\n{architecture}\n{body}".encode()).hexdigest()
