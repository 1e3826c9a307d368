"""The lock file of a recipe: one section per architecture, each with a hash by which manual edits are detected.

The same locks give the same text, byte for byte. Writing one section leaves the others as they are.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from toolkit.pins.lock.section import read_section, section_lines
from toolkit.support.errors import WrongInput
from toolkit.support.files import locked, read_small, refuse_link, write_atomically
from toolkit.support.tomlfile import parse_toml, read_toml

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


def write_lock(lock: Lock, path: Path) -> tuple[str, ...]:
    """Write the section of a lock unless the file has the same; return the architectures whose sections were lost.

    The sections of other architectures stay as they are: out of date or not, and edited by hand or not. Only what would
    make the file unreadable is lost, such as the markers of a merge conflict. Commands that write at the same time wait
    for each other, so that none loses the section of another; the lock file is removed at the end.
    """
    refuse_link(path)
    if path.is_file() and _text(path) == _replaced(_text(path), lock)[0]:
        return ()
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".{path.name}.lock")
    with locked(waiting):
        try:
            text, lost = _replaced(_text(path) if path.exists() else "", lock)
            write_atomically(path, text, keep_mode=True)
        finally:
            waiting.unlink(missing_ok=True)
    return lost


def _replaced(before: str, lock: Lock) -> tuple[str, tuple[str, ...]]:
    """The text of a file with the section of a lock, and the architectures whose sections it cannot keep."""
    others = {name: text for name, text in _sections(before).items() if name != lock.architecture}
    whole = _file(lock.recipe, {**others, lock.architecture: _section(lock)})
    if _is_toml(whole):
        return whole, ()
    intact = {name: text for name, text in others.items() if _is_intact(lock.recipe, name, text)}
    lost = tuple(sorted(others.keys() - intact.keys()))
    return _file(lock.recipe, {**intact, lock.architecture: _section(lock)}), lost


def _is_toml(text: str) -> bool:
    try:
        parse_toml(text.encode().decode())  # bytes that are not UTF-8 are surrogates, which TOML excludes
    except ValueError:
        return False
    return True


def load_lock(path: Path, architecture: str) -> Lock | None:
    """The lock for `architecture`; None if there is no file, or it has no section for it.

    Raises WrongInput if the file cannot be read (`unreadable-lock`), is damaged or from another ctk (`wrong-lock`), or
    the section was edited by hand (`edited-lock`).
    """
    if not path.exists():
        return None
    file = _read(path)
    section = _sections(file.text).get(architecture)
    if section is None:
        return None
    again = f"`ctk lock {_name(path)} --arch {architecture}` regenerates it."
    if not _is_intact(str(file.content.get("recipe")), architecture, section):
        what = f"the section for {architecture} of {path}"
        raise WrongInput(f"{what} was edited by hand, or is damaged", fix=again, code="edited-lock")
    try:
        return read_section(file, architecture)
    except WrongInput as error:  # the hash matches: written by another version of ctk, not edited
        raise WrongInput(error.message, fix=again, code="wrong-lock") from error


def locked_architectures(path: Path) -> tuple[str, ...]:
    """The architectures that a lock file has a section for. Raises WrongInput as `load_lock` does."""
    return tuple(_sections(_read(path).text)) if path.exists() else ()


def _read(path: Path) -> TomlFile:
    again = f"`ctk lock {_name(path)}` regenerates it."
    try:
        file = read_toml(path)
    except WrongInput as error:
        if isinstance(error.__cause__, OSError) or error.code == "not-a-file":
            fix = f"Make {path} a file that you can read, or remove it: then `ctk lock {_name(path)}` makes it."
            raise WrongInput(error.message, fix=fix, code="unreadable-lock") from error
        raise WrongInput(error.message, fix=again, code="wrong-lock") from error
    if file.content.get("schema") != SCHEMA:
        raise WrongInput(f"{path} is not a lock file that this version of ctk can read", fix=again, code="wrong-lock")
    if "content" in file.content:  # the hash of a file with one lock and no sections
        fix = f"Run `ctk lock {_name(path)}`."
        raise WrongInput(f"{path} was written by an earlier ctk", fix=fix, code="wrong-lock")
    return file


def _name(path: Path) -> str:
    return path.name.removesuffix(".lock.toml")


def _text(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 become surrogates. Raises WrongInput if it cannot be read."""
    try:
        return read_small(path).decode(errors="surrogateescape").replace("\r\n", "\n")
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}", code="unreadable-lock") from error


def _file(recipe: str, sections: Mapping[str, str]) -> str:
    head = f"# Written by `ctk lock {recipe}`. Do not edit: change the recipe, then run `ctk lock` again.\n"
    parts = (f"\n[{architecture}]\n{text}" for architecture, text in sorted(sections.items()))
    return f'{head}schema = "{SCHEMA}"\nrecipe = "{recipe}"\n{"".join(parts)}'


def _section(lock: Lock) -> str:
    body = "".join(f"{line}\n" for line in section_lines(lock))
    return f'content = "sha256:{_digest(lock.recipe, lock.architecture, body)}"\n{body}'


def _sections(text: str) -> dict[str, str]:
    """The text below the header of each section, without the empty line that separates it from the next one.

    A header that stands twice, as after a merge, makes one section with the text of both, which is not intact.
    """
    _, *parts = _HEADER.split(text)
    found: dict[str, str] = {}
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        section = part.rstrip("\n") + "\n"
        found[name] = f"{found[name]}\n[{name}]\n{section}" if name in found else section
    return found


def _is_intact(recipe: str, architecture: str, section: str) -> bool:
    said = _CONTENT.match(section)
    return said is not None and _digest(recipe, architecture, section[said.end() :]) == said[1]


def _digest(recipe: str, architecture: str, body: str) -> str:
    return hashlib.sha256(f"{recipe}\n{architecture}\n{body}".encode(errors="surrogateescape")).hexdigest()
