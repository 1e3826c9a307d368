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
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import has_hidden_control
from toolkit.support.tomlfile import TomlFile, parse_toml

if TYPE_CHECKING:
    from toolkit.builds.record import Record
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Base


@dataclass(frozen=True, slots=True)
class Restored:
    """The files that were written, those that the recipe needs and the image does not hold, and warnings."""

    written: tuple[Path, ...]
    missing: tuple[Path, ...]
    warnings: tuple[Finding, ...] = ()


def recipe_text(image: Path, record: Record | None) -> str:
    """The recipe that `image` was built from, as the text of a file. Raises WrongInput if it holds none."""
    text = _of_recipe(image, record, "recipe").recipe
    if text is None:
        fix = "`ctk inspect IMAGE --definition` prints the definition that it was built from."
        raise WrongInput(
            f"{image} holds no recipe: it was not built from one, or by an earlier version of ctk", fix=fix
        )
    return _checked(image, text, "recipe")


def lock_text(image: Path, record: Record | None) -> str:
    """As `recipe_text`, of the lock."""
    found = _of_recipe(image, record, "lock")
    if found.lock is None:
        reason = (
            "its recipe installs nothing"
            if found.recipe
            else "it was not built from one, or by an earlier version of ctk"
        )
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
    """`text` if it is TOML without characters that control a terminal or hide what it says."""
    try:
        parse_toml(text)
    except ValueError as error:
        raise WrongInput(f"{image} is damaged: its {what} is not TOML: {error}", code="corrupt-image") from error
    if has_hidden_control(text):
        reason = f"its {what} has control characters or bidirectional marks"
        raise WrongInput(f"{image} is damaged: {reason}", code="corrupt-image")
    return text


def restore(
    image: Path, record: Record | None, catalogue: Catalogue, *, recipe: bool, lock: bool, force: bool
) -> Restored:
    """Write the recipe and the lock of `image` to the user's own directory of `catalogue`.

    If the recipe installs nothing, it has no lock; this is an error only if the lock alone is asked for. The entry of
    its base comes with the recipe if the catalogue has none; one that overrides a shipped base, for every recipe of
    the directory, only with `force`. Raises WrongInput before anything is written if the image does not hold what is
    asked for, or another file would be replaced without `force`.
    """
    found = _of_recipe(image, record, "recipe" if recipe else "lock")
    files: dict[Path, str] = {}
    if recipe:
        files[catalogue.own / f"{found.recipe_name}.toml"] = recipe_text(image, found)
    if lock and not (recipe and found.lock is None):
        files[catalogue.own / f"{found.recipe_name}.lock.toml"] = lock_text(image, found)
    base = _recorded_base(image, found) if recipe else None
    changes, warnings = _changes(base, catalogue, force=force) if base else ((), ())
    for path, text in files.items():
        refuse_link(path)
        if path.exists() and not force and not _has(path, text):
            raise _kept(path, "other content")
    catalogue.own.mkdir(parents=True, exist_ok=True)
    bases = [write_changes(catalogue, changes)] if changes else []
    for path, text in files.items():
        write_atomically(path, text)
    missing = _missing(catalogue, catalogue.own / f"{found.recipe_name}.toml") if recipe else ()
    return Restored((*files, *bases), missing, warnings)


def _has(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode(errors="surrogateescape")


def _kept(path: Path, what: str) -> WrongInput:
    return WrongInput(f"{path} exists and has {what}", fix="Choose another directory with -o, or use --force.")


def _changes(base: Base, catalogue: Catalogue, *, force: bool) -> tuple[tuple[Change, ...], tuple[Finding, ...]]:
    """What bases.toml needs so that the recipe has the image's base, and a warning if it overrides another."""
    known = catalogue.bases().get(base.name)
    if known is not None and _same(known, base):
        return (), ()
    change = (Change(base.name, table_of(base), whole=True),)
    if known is None:
        return change, ()
    if base.name in bases_in(catalogue.own) and not force:
        raise _kept(own_file(catalogue), f"another base {base.name}")
    return change if force else (), (_other_base(base, known, written=force),)


def _other_base(base: Base, known: Base, *, written: bool) -> Finding:
    message = f"the base {base.name} of the image is {_address(base)}; the one known here is {_address(known)}"
    if written:
        message += ". All recipes of this directory now use that of the image"
        return Finding("base-overridden", Severity.WARNING, message)
    fix = "The recipe uses the one known here. With --force, all recipes of the directory use that of the image."
    return Finding("base-overridden", Severity.WARNING, message, fix)


def _address(base: Base) -> str:
    digest = base.digest or base.inrelease
    return f"{base.reference} ({digest})" if digest else base.reference


def _recorded_base(image: Path, record: Record) -> Base | None:
    """The base in the record, which must be the one that the recipe names, and no other."""
    if record.base is None or record.base.entry is None:
        return None
    entry = _checked(image, record.base.entry, "base")
    wanted = str(parse_toml(recipe_text(image, record)).get("base"))
    try:
        found = bases_of(TomlFile(image, entry, parse_toml(entry)))
    except WrongInput as error:
        raise WrongInput(f"{image} is damaged: its base: {error.message}", code="corrupt-image") from error
    if [*found] != [wanted]:
        reason = f"its record must have the base {wanted!r} alone, and has {', '.join(found) or 'none'}"
        raise WrongInput(f"{image} is damaged: {reason}", code="corrupt-image")
    base = found[wanted]
    if any(has_hidden_control(str(value)) for value in table_of(base).values()):
        reason = "its base has control characters or bidirectional marks"
        raise WrongInput(f"{image} is damaged: {reason}", code="corrupt-image")
    return base


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
