"""The recipe and the lock of an image as files again, from which `ctk build` makes an image with the same packages.

The image may be another user's: its texts are checked before they are shown or written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.builds.provenance import NEEDED_KEYS
from toolkit.pins.bases.own_file import Change, own_file, table_of, write_changes
from toolkit.recipes.bases import bases_in, bases_of
from toolkit.recipes.catalogue import is_recipe_name
from toolkit.recipes.load import load_recipe
from toolkit.support.errors import WrongInput
from toolkit.support.files import refuse_link, write_atomically
from toolkit.support.tomlfile import TomlFile, parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.builds.record import Record
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Base


@dataclass(frozen=True, slots=True)
class Restored:
    """The files that were written, and those that the recipe needs and the image does not hold."""

    written: tuple[Path, ...]
    missing: tuple[Path, ...]


def recipe_text(image: Path, record: Record | None) -> str:
    """The recipe that `image` was built from, as the text of a file. Raises WrongInput if it holds none."""
    text = _of_recipe(image, record, "recipe").recipe
    if text is None:
        fix = "`ctk inspect IMAGE --definition` prints the definition that it was built from."
        raise WrongInput(f"{image} holds no recipe: an earlier version of ctk built it", fix=fix)
    return _checked(image, text, "recipe")


def lock_text(image: Path, record: Record | None) -> str:
    """As `recipe_text`, of the lock."""
    found = _of_recipe(image, record, "lock")
    if found.lock is None:
        reason = "its recipe installs nothing" if found.recipe else "an earlier version of ctk built it"
        raise WrongInput(f"{image} holds no lock: {reason}")
    return _checked(image, found.lock, "lock")


def _of_recipe(image: Path, record: Record | None, what: str) -> Record:
    if record is None:
        raise WrongInput(f"{image} holds no {what}: it was not built by ctk")
    if record.recipe_name is None:
        raise WrongInput(f"{image} holds no {what}: it was built from {record.target}, which is not a recipe")
    if not is_recipe_name(record.recipe_name):
        raise WrongInput(f"{image} is damaged: {record.recipe_name!r} is not a recipe name", code="corrupt-image")
    return record


def _checked(image: Path, text: str, what: str) -> str:
    """`text` if it is TOML, which has no control characters."""
    try:
        parse_toml(text)
    except ValueError as error:
        raise WrongInput(f"{image} is damaged: its {what} is not TOML: {error}", code="corrupt-image") from error
    return text


def restore(
    image: Path, record: Record | None, catalogue: Catalogue, *, recipe: bool, lock: bool, force: bool
) -> Restored:
    """Write the recipe and the lock of `image` to the user's own directory of `catalogue`.

    If the recipe installs nothing, it has no lock; this is an error only if the lock alone is asked for. An entry of
    bases.toml comes with the recipe if the catalogue has none, or another one. Raises WrongInput before anything is
    written if the image does not hold what is asked for, or another file would be replaced without `force`.
    """
    found = _of_recipe(image, record, "recipe" if recipe else "lock")
    files: dict[Path, str] = {}
    if recipe:
        files[catalogue.own / f"{found.recipe_name}.toml"] = recipe_text(image, found)
    if lock and not (recipe and found.lock is None):
        files[catalogue.own / f"{found.recipe_name}.lock.toml"] = lock_text(image, found)
    entry = found.base.entry if found.base and recipe else None
    changes = _changes(image, entry, catalogue, force=force)
    for path, text in files.items():
        refuse_link(path)
        if path.exists() and not force and not _has(path, text):
            raise _kept(path, "other content")
    catalogue.own.mkdir(parents=True, exist_ok=True)
    bases = [write_changes(catalogue, changes)] if changes else []
    for path, text in files.items():
        write_atomically(path, text)
    missing = _missing(catalogue, catalogue.own / f"{found.recipe_name}.toml") if recipe else ()
    return Restored((*files, *bases), missing)


def _has(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode(errors="surrogateescape")


def _kept(path: Path, what: str) -> WrongInput:
    return WrongInput(f"{path} exists and has {what}", fix="Choose another directory with -o, or use --force.")


def _changes(image: Path, entry: str | None, catalogue: Catalogue, *, force: bool) -> tuple[Change, ...]:
    """What bases.toml needs so that the recipe's base is the one of the image."""
    if entry is None:
        return ()
    known, own = catalogue.bases(), bases_in(catalogue.own)
    changes = []
    for name, base in _bases_of_entry(image, entry).items():
        if name in known and _same(known[name], base):
            continue
        if name in own and not force:
            raise _kept(own_file(catalogue), f"another base {name}")
        changes.append(Change(name, table_of(base), whole=True))
    return tuple(changes)


def _bases_of_entry(image: Path, entry: str) -> Mapping[str, Base]:
    try:
        return bases_of(TomlFile(image, entry, parse_toml(entry)))
    except ValueError as error:
        raise WrongInput(f"{image} is damaged: its base is not TOML: {error}", code="corrupt-image") from error


def _same(known: Base, recorded: Base) -> bool:
    """Whether two entries are of the same image, with the same facts: a record has not all of an entry's keys."""
    tables: list[dict[str, Any]] = [table_of(base) for base in (known, recorded)]
    return {key: tables[0].get(key) for key in NEEDED_KEYS} == {key: tables[1].get(key) for key in NEEDED_KEYS}


def _missing(catalogue: Catalogue, path: Path) -> tuple[Path, ...]:
    """What the recipe copies or starts from, and is not on this machine."""
    recipe = load_recipe(path, catalogue.bases())
    wanted = [copy.source for copy in recipe.files]
    if recipe.base.is_local:
        wanted.append(recipe.base.path)
    return tuple(Path(os.path.normpath(path)) for path in wanted if not path.exists())
