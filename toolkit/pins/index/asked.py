"""When the index was last asked for which packages; kept in uv's cache, beside the pages that it answered with."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from typing import TYPE_CHECKING

from toolkit.pins.index.uv import index_places
from toolkit.support.errors import CtkError
from toolkit.support.files import make_directory, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolkit.pins.index.uv import Uv
    from toolkit.recipes.model import Index

_KEPT_SECONDS = 86_400.0


def note_asked(uv: Uv, indexes: Iterable[Index], names: Iterable[str]) -> None:
    """Remember that the index was asked for `names` now. It is no error where that cannot be written."""
    path, now = _path(uv, indexes), time.time()
    with contextlib.suppress(OSError, CtkError):
        make_directory(path.parent)
        write_atomically(path, json.dumps({**_lately(path), **dict.fromkeys(names, now)}), durable=False)


def asked_lately(uv: Uv, indexes: Iterable[Index], names: Iterable[str]) -> bool:
    """Whether the index was asked for each of `names` within a day."""
    return set(names) <= _lately(_path(uv, indexes)).keys()


def _lately(path: Path) -> dict[str, float]:
    try:
        found = dict(json.loads(path.read_bytes()))
        return {name: float(when) for name, when in found.items() if 0 <= time.time() - float(when) < _KEPT_SECONDS}
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def _path(uv: Uv, indexes: Iterable[Index]) -> Path:
    """One file for each set of indexes: a package may come from another one where that changes."""
    name = hashlib.sha256(repr((index_places(), *indexes)).encode()).hexdigest()
    return uv.cache / "ctk-asked" / f"{name}.json"
