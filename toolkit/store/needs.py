"""Which images were made with which entries: one small file for each image, next to the entries."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.store.entries import Kind, is_key
from toolkit.support.errors import CtkError
from toolkit.support.files import make_directory, open_regular, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIRECTORY = "images"
_LARGEST = 1 << 20  # bytes
_MAX_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class ImageNeeds:
    """An image, the name of its recipe, and the entries that it was made with."""

    image: Path
    recipe: str
    entries: frozenset[tuple[Kind, str]]


def note_image(own: Path, image: Path, recipe: str, used: Iterable[Path]) -> None:
    """Note in the store `own` that `image` was made with these files of stores; an earlier note on it is replaced.

    Files of no store are left out. Nothing depends on the note but what `ctk cache list` shows: where it
    cannot be written, there is none.
    """
    content = {
        "image": os.fsdecode(image.absolute()),
        "recipe": recipe,
        "entries": sorted({entry for path in used if _is_entry(entry := path.parts[-3:-1])}),
    }
    with contextlib.suppress(OSError, CtkError):
        make_directory(own / _DIRECTORY)
        name = hashlib.sha256(os.fsencode(image.absolute())).hexdigest()
        write_atomically(own / _DIRECTORY / name, json.dumps(content) + "\n", mode=0o600, durable=False)


def images(own: Path, *, forget: bool = False) -> tuple[ImageNeeds, ...]:
    """The images that still exist, by path; with `forget`, the notes on others are removed. Raises nothing."""
    found = []
    with contextlib.suppress(OSError):
        for path in (own / _DIRECTORY).iterdir():
            needs = None if path.name.startswith(".") else _read(path)
            if needs is not None and os.path.lexists(needs.image):
                found.append(needs)
            elif forget:
                with contextlib.suppress(OSError):
                    path.unlink()
    return tuple(sorted(found, key=lambda needs: needs.image))


def _is_entry(names: tuple[str, ...]) -> bool:
    """Whether the last two directories of a path are those of an entry: its kind and its key."""
    return len(names) == 2 and names[0] in set(Kind) and is_key(names[1])


def _read(path: Path) -> ImageNeeds | None:
    try:
        with open_regular(path) as file:
            content = json.loads(file.read(_LARGEST))
        image, recipe, entries = (content[name] for name in ("image", "recipe", "entries"))
        if not (isinstance(image, str) and image.startswith("/") and isinstance(recipe, str)):
            return None
        return ImageNeeds(Path(image), recipe, frozenset(map(_entry, entries[:_MAX_ENTRIES])))
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return None


def _entry(value: Any) -> tuple[Kind, str]:
    kind, key = value
    if not isinstance(key, str) or not is_key(key):
        raise ValueError("not a key")
    return Kind(kind), key
