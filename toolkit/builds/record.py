"""ctk's own record of an image: the object `ctk.json` in a SIF, the file `NAME.ctk.json` beside a sandbox."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toolkit import __version__
from toolkit.builds.identity import current_identity
from toolkit.inventory.formats.sif import read_sif
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.files import open_regular, write_atomically
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Recipe

OBJECT_NAME = "ctk.json"
CHANGED = '"changed": true'  # as the record of a sandbox says that it was opened for changes
_SCHEMA = "ctk.image/2"
# Without recipe and lock, and with the paths of targets: read, never written, and no longer in docs/schemas.
_EARLIER = f"{_SCHEMA[:-1]}1"


@dataclass(frozen=True, slots=True)
class RecordedBase:
    """The base of an image: of a local one `reference` is its file name. `entry` is its table of bases.toml."""

    name: str
    reference: str | None = None
    digest: str | None = None
    entry: str | None = None

    def as_document(self) -> dict[str, str | None]:
        return {"name": self.name, "reference": self.reference, "digest": self.digest, "entry": self.entry}


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs that made an image, with their versions; None for one that had no part in it.

    `installer` put the Python packages of the lock into the image, `mksquashfs` packed its layers.
    """

    ctk: str = __version__
    runtime: str | None = None
    installer: str | None = None
    mksquashfs: str | None = None

    def as_document(self) -> dict[str, str | None]:
        return {
            "ctk": self.ctk,
            "runtime": self.runtime,
            "installer": self.installer,
            "mksquashfs": self.mksquashfs,
        }


@dataclass(frozen=True, slots=True)
class Record:
    """What an image was built from, and its audit result. No user names, no absolute paths, no times.

    `target` is `kind:name`, `base` is None for an image that is no recipe's. `verdict` and the codes in `findings`
    are the audit's; None and empty without an audit. `changed` says of a sandbox that it was opened for changes.
    `inputs` are names and fingerprints of all that the image was made from (`inputs_of`), none where not all is known.
    `made_from` are those of the parts of its recipe, and of its lock. `layers` are the names of a layered image's
    layers, in their order; empty for a flat one. `recipe` and `lock` are the texts of files from which `ctk build`
    makes an image with the same packages.
    """

    target: str
    base: RecordedBase | None = None
    verdict: Verdict | None = None
    findings: tuple[str, ...] = ()
    changed: bool = False
    inputs: Mapping[str, str] = field(default_factory=dict)
    made_from: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    recipe: str | None = None
    lock: str | None = None
    tools: Tools = Tools()

    @property
    def recipe_name(self) -> str | None:
        """The recipe that the image was built from; None for another target."""
        kind, _, name = self.target.partition(":")
        return name if kind == "recipe" else None

    def as_document(self) -> dict[str, Any]:
        """The keys of docs/schemas/image.json, but for `inode`."""
        return {
            "schema": _SCHEMA,
            "target": self.target,
            "base": self.base.as_document() if self.base else None,
            "layers": list(self.layers),
            "verdict": self.verdict,
            "findings": list(self.findings),
            "changed": self.changed,
            "tools": self.tools.as_document(),
            "inputs": dict(self.inputs),
            "made_from": dict(self.made_from),
            "recipe": self.recipe,
            "lock": self.lock,
        }

    def as_text(self, **more: object) -> str:
        return json.dumps({**self.as_document(), **more}, indent=2, ensure_ascii=False) + "\n"


def record_beside(sandbox: Path) -> Path:
    """The path of a sandbox's record."""
    return sandbox.with_name(f"{sandbox.name}.{OBJECT_NAME}")


def write_beside(sandbox: Path, record: Record) -> None:
    """Write the record of a sandbox, bound to this very directory: another one of that name is not ctk's."""
    write_atomically(record_beside(sandbox), record.as_text(inode=sandbox.stat().st_ino))


def mark_changed(sandbox: Path) -> None:
    """Remember that a sandbox of ctk's was opened for changes, so that no build replaces it unasked."""
    record = read_record(sandbox)
    if record is not None and not record.changed:
        write_beside(sandbox, replace(record, changed=True))


def read_record(image: Path) -> Record | None:
    """The record of a SIF or a sandbox; None if there is none, it is damaged, or the file is no image of ctk's."""
    try:
        return checked_record(image)
    except WrongInput:
        return None


def checked_record(image: Path) -> Record | None:
    """As `read_record`. Raises WrongInput if a text of the record cannot be written to a file."""
    try:
        if image.is_dir():
            with open_regular(record_beside(image)) as file:
                document: Any = json.loads(file.read())
            if document.get("inode") not in (None, image.stat().st_ino):
                return None
        else:
            document = read_sif(image).json_object(OBJECT_NAME)
    except (CtkError, OSError, ValueError, AttributeError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    try:
        json.dumps(document, ensure_ascii=False).encode()  # JSON can hold lone surrogates
    except (UnicodeEncodeError, RecursionError) as error:
        reason = "its record has a text that is not valid Unicode"
        raise WrongInput(f"{image} is damaged: {reason}", code="corrupt-image") from error
    return _record(document)


def _record(document: Mapping[str, Any]) -> Record | None:
    target = document.get("target")
    if not isinstance(target, str):
        return None
    record = Record(
        target,
        verdict=_verdict(document.get("verdict")),
        findings=_texts(document.get("findings")),
        changed=document.get("changed") is True,
        made_from=_fingerprints(document.get("made_from")),
    )
    if document.get("schema") == _EARLIER:
        # Without `inputs` no such image is up to date: the next build replaces it.
        name, made_by = _text(document, "base"), Tools(str(document.get("ctk")))
        base = None if name is None else RecordedBase(name)
        return replace(record, target=current_identity(target), base=base, tools=made_by)
    if document.get("schema") != _SCHEMA:
        return None
    return replace(
        record,
        base=_base(document.get("base")),
        inputs=_fingerprints(document.get("inputs")),
        layers=_texts(document.get("layers")),
        recipe=_text(document, "recipe"),
        lock=_text(document, "lock"),
        tools=_tools(document.get("tools")),
    )


def _base(value: object) -> RecordedBase | None:
    if not isinstance(value, dict) or (name := _text(value, "name")) is None:
        return None
    return RecordedBase(name, _text(value, "reference"), _text(value, "digest"), _text(value, "entry"))


def _tools(value: object) -> Tools:
    table = value if isinstance(value, dict) else {}
    return Tools(str(table.get("ctk")), *(_text(table, name) for name in ("runtime", "installer", "mksquashfs")))


def _text(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _verdict(word: object) -> Verdict | None:
    return next((verdict for verdict in Verdict if verdict == word), None)


def _fingerprints(value: object) -> dict[str, str]:
    return {str(key): str(fingerprint) for key, fingerprint in value.items()} if isinstance(value, dict) else {}


def recipe_of(image: Path, catalogue: Catalogue) -> Recipe | None:
    """The recipe that ctk built `image` from; None if it was built otherwise, or the recipe is not known here."""
    record = read_record(image)
    name = record.recipe_name if record else None
    return catalogue.recipe(name) if name in catalogue.paths() else None
