"""ctk's own record of an image: the object `ctk.json` in a SIF, the file `NAME.ctk.json` beside a sandbox."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toolkit import __version__
from toolkit.inventory.formats.sif import read_sif
from toolkit.support.errors import CtkError
from toolkit.support.files import open_regular, write_atomically
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Recipe

OBJECT_NAME = "ctk.json"
CHANGED = '"changed": true'  # as the record of a sandbox says that it was opened for changes
_SCHEMA = "ctk.image/1"


@dataclass(frozen=True, slots=True)
class Record:
    """What an image was built from, and its audit result.

    `target` is `kind:name`, `base` the name of the base of a recipe, else None. `verdict` and the codes in `findings`
    are the audit's; None and empty without an audit. `changed` says of a sandbox that it was opened for changes.
    `inputs` are names and fingerprints of all that the image was made from (`inputs_of`), none where not all is known.
    `made_from` are those of the parts of its recipe, and of its lock.
    """

    target: str
    base: str | None = None
    verdict: Verdict | None = None
    findings: tuple[str, ...] = ()
    ctk: str = __version__
    changed: bool = False
    inputs: Mapping[str, str] = field(default_factory=dict)
    made_from: Mapping[str, str] = field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """The keys of docs/schemas/image.json, but for `inode`."""
        return {
            "schema": _SCHEMA,
            "target": self.target,
            "base": self.base,
            "verdict": self.verdict,
            "findings": list(self.findings),
            "ctk": self.ctk,
            "changed": self.changed,
            "inputs": dict(self.inputs),
            "made_from": dict(self.made_from),
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
    """The record of a SIF or a sandbox; None if there is none, or the file is no image of ctk's."""
    try:
        if image.is_dir():
            with open_regular(record_beside(image)) as file:
                document: Any = json.loads(file.read())
            if document.get("inode") not in (None, image.stat().st_ino):
                return None
        else:
            document = read_sif(image).json_object(OBJECT_NAME)
    except (CtkError, OSError, ValueError, AttributeError):
        return None
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        return None
    target, findings = document.get("target"), document.get("findings")
    if not isinstance(target, str):
        return None
    base = document.get("base") if isinstance(document.get("base"), str) else None
    codes = tuple(map(str, findings)) if isinstance(findings, list) else ()
    changed = document.get("changed") is True
    fingerprints = (_fingerprints(document.get(key)) for key in ("inputs", "made_from"))
    verdict = _verdict(document.get("verdict"))
    return Record(target, base, verdict, codes, str(document.get("ctk")), changed, *fingerprints)


def _verdict(word: object) -> Verdict | None:
    return next((verdict for verdict in Verdict if verdict == word), None)


def _fingerprints(value: object) -> dict[str, str]:
    return {str(key): str(fingerprint) for key, fingerprint in value.items()} if isinstance(value, dict) else {}


def recipe_of(image: Path, catalogue: Catalogue) -> Recipe | None:
    """The recipe that ctk built `image` from; None if it was built otherwise, or the recipe is not known here."""
    record = read_record(image)
    kind, _, name = record.target.partition(":") if record else ("", "", "")
    return catalogue.recipe(name) if kind == "recipe" and name in catalogue.paths() else None
