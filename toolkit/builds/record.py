"""ctk's own record of an image: the object `ctk.json` in a SIF, the file `NAME.ctk.json` beside a sandbox."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from toolkit import __version__
from toolkit.inventory.sif import read_sif
from toolkit.support.errors import CtkError

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Recipe

OBJECT_NAME = "ctk.json"
_SCHEMA = "ctk.image/1"


@dataclass(frozen=True, slots=True)
class Record:
    """What an image was made from, and what the audit said of it.

    `target` is `kind:name`, `base` the name of the base of a recipe, else None. `verdict` and the codes in `findings`
    are the audit's, None and none where it was not asked.
    """

    target: str
    base: str | None = None
    verdict: str | None = None
    findings: tuple[str, ...] = ()
    ctk: str = __version__

    def as_text(self) -> str:
        return json.dumps({"schema": _SCHEMA, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"


def record_beside(sandbox: Path) -> Path:
    """Where the record of a sandbox stands."""
    return sandbox.with_name(f"{sandbox.name}.{OBJECT_NAME}")


def read_record(image: Path) -> Record | None:
    """The record of a SIF or a sandbox; None where there is none, or the file is no image of ctk's."""
    try:
        if image.is_dir():
            document: Any = json.loads(record_beside(image).read_text(encoding="utf-8"))
        else:
            document = read_sif(image).json_object(OBJECT_NAME)
    except (CtkError, OSError, ValueError):
        return None
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        return None
    target, findings = document.get("target"), document.get("findings")
    if not isinstance(target, str):
        return None
    base, verdict = (value if isinstance(value := document.get(key), str) else None for key in ("base", "verdict"))
    codes = tuple(map(str, findings)) if isinstance(findings, list) else ()
    return Record(target, base, verdict, codes, str(document.get("ctk")))


def recipe_of(image: Path, catalogue: Catalogue) -> Recipe | None:
    """The recipe that ctk built `image` from; None where it was built otherwise, or the recipe is not known here."""
    record = read_record(image)
    kind, _, name = record.target.partition(":") if record else ("", "", "")
    return catalogue.recipe(name) if kind == "recipe" and name in catalogue.paths() else None
