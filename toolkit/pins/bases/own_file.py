"""The user's own entries of bases, in `./defs/bases.toml`: added and updated, with every comment kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from toolkit.pins.bases.check import State
from toolkit.recipes.bases import bases_of
from toolkit.recipes.model import ARCHITECTURES
from toolkit.support.errors import WrongInput
from toolkit.support.files import locked, refuse_link, write_atomically
from toolkit.support.tomlfile import TomlFile, parse_toml, read_toml, with_line_ends_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from tomlkit import TOMLDocument

    from toolkit.pins.bases.check import Checked
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Base

# The keys of an entry in the order in which they are written.
KEYS = (
    *("description", "family", "broken", "bootstrap", "reference", "digest", "digest_of", "inrelease"),
    *("evidence", "checked", "size", "architectures", "framework", "framework_version", "installer", "python"),
    *("python_path", "cuda", "cudnn", "rocm", "code", "runs_on", "driver", "os", "glibc", "apt", "source"),
)
_DATES = ("checked",)


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be written to one entry: `values` by key. The keys `gone` go, and with `whole` all others do.

    With `new` the file must have no entry of that name yet.
    """

    name: str
    values: Mapping[str, Any]
    gone: tuple[str, ...] = ()
    whole: bool = False
    new: bool = False

    def drops(self, key: str) -> bool:
        return key in self.gone or (self.whole and key not in self.values)


def table_of(base: Base) -> dict[str, Any]:
    """A base as the table of a file: what is known of it, in the order of `KEYS`."""
    values = {key: getattr(base, key) for key in KEYS}
    return {key: _plain(key, value) for key, value in values.items() if value not in (None, "", ())}


def _plain(key: str, value: Any) -> Any:
    if key in _DATES:
        return date.fromisoformat(value)
    return list(value) if isinstance(value, tuple) else int(value) if isinstance(value, int) else str(value)


def learned(found: Checked, today: date) -> dict[str, Any]:
    """What a registry told of a base, as values of its entry; nothing if it told nothing new."""
    if found.image is None or found.state not in (State.SAME, State.MOVED, State.UNPINNED):
        return {}
    image, base = found.image, found.base
    values: dict[str, Any] = {"digest": image.digest, "digest_of": str(image.digest_of)}
    if image.size:
        values["size"] = image.size
    if architectures := [name for name in image.architectures if name in ARCHITECTURES]:
        values["architectures"] = architectures
    known = table_of(base)
    return {} if all(known.get(key) == value for key, value in values.items()) else {**values, "checked": today}


def change_of(found: Checked, own: Collection[str], today: date) -> Change | None:
    """How `ctk bases check --write` changes an entry; None if nothing new is known.

    An entry of `./defs/bases.toml` keeps its other keys. Another one is copied there, and so replaced. The
    evidence of a digest is not that of another one.
    """
    values, base = learned(found, today), found.base
    if not values:
        return None
    gone = ("evidence",) if found.state is State.MOVED else ()
    if base.name in own:
        return Change(base.name, values, gone)
    whole = {**table_of(base), **values}
    return Change(base.name, {key: whole[key] for key in KEYS if key in whole and key not in gone}, whole=True)


def own_file(catalogue: Catalogue) -> Path:
    """The file that is written. Its entries replace all others of the same name."""
    return catalogue.own / "bases.toml"


def own_names(catalogue: Catalogue) -> set[str]:
    """The bases that the file has. Raises WrongInput if it cannot be read."""
    path = own_file(catalogue)
    return set(read_toml(path).content) if path.is_file() else set()


def write_changes(catalogue: Catalogue, changes: Sequence[Change]) -> Path:
    """Write changes to the user's own file, completely or not at all; return its path.

    Commands that write at the same time wait for each other, so that none loses the entries of another. The lock file
    is removed at the end.
    """
    path = own_file(catalogue)
    catalogue.own.mkdir(exist_ok=True)
    refuse_link(path)
    lock = path.with_name(f".{path.name}.lock")
    with locked(lock):
        try:
            text = changed(read_toml(path).text if path.is_file() else "", changes)
            bases_of(TomlFile(path, text, parse_toml(text)))  # what ctk would refuse to read is not written
            write_atomically(path, with_line_ends_of(path, text), keep_mode=True)
        finally:
            lock.unlink(missing_ok=True)
    return path


def changed(text: str, changes: Iterable[Change]) -> str:
    """The text of a file of bases after some changes."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        document = tomlkit.parse(text)
    except ParseError as error:  # tomllib has read it: tomlkit knows TOML 1.0 only in part
        raise WrongInput(f"cannot edit the file of your bases: {error}") from error
    for change in changes:
        if change.name not in document:
            table = tomlkit.table()
            for key, value in change.values.items():
                table.add(key, value)
            document.add(change.name, table)
            continue
        if change.new:
            raise WrongInput(f'there is already a base "{change.name}"', fix="Choose another --name, or add --force.")
        table = _table_in(document, change.name)
        _update(table, change.values, [key for key in table if change.drops(key)])
    return tomlkit.dumps(document)


def _table_in(document: TOMLDocument, name: str) -> Any:
    """The table of an entry. Raises WrongInput for one of dotted keys, which tomlkit 0.13 cannot edit reliably."""
    found = [item for key, item in document.body if key is not None and key.key == name and not key.is_dotted()]
    if len(found) != 1:
        raise WrongInput(f"the base {name} is written in dotted keys", fix=f"Write it as a table: [{name}]")
    return found[0]


def _update(table: Any, values: Mapping[str, Any], gone: Iterable[str]) -> None:
    """Change a table. New keys go after its last one: what follows that is about the next table."""
    body = table.value.body
    tail = []
    while body and body[-1][0] is None:
        tail.append(body.pop())
    for key in gone:
        del table[key]
    for key, value in values.items():
        table[key] = value
    body.extend(reversed(tail))
