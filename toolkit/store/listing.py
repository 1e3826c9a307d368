"""What a store holds, read without reading the contents."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.store.checking import read_entry
from toolkit.store.entries import Kind, is_key
from toolkit.store.needs import images
from toolkit.store.trusted import Untrusted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolkit.store.needs import ImageNeeds
    from toolkit.store.store import Store


_MOST_AHEAD = 3600.0  # seconds
_LAYER_MARK = "ctk-layer-"  # in the name of a layer, before its digest
_DIGEST = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}")  # what is enough to tell one from another


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry: `size` is in bytes on disk, `last_use` in seconds since 1970.

    `problem` is why it cannot be used, None as far as its record tells; `is_foreign`: it may be whole, but a user who
    is not trusted could have written it. `about` may have been written by another user. `needed_by` are the images on
    this host that were made with it.
    """

    root: Path
    kind: Kind
    key: str
    size: int
    last_use: float
    about: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    needed_by: tuple[ImageNeeds, ...] = ()
    is_foreign: bool = False

    @property
    def directory(self) -> Path:
        return self.root / self.kind / self.key

    def has_known_use(self, now: float) -> bool:
        """Whether the last use can be true at `now`: another host's clock may be an hour ahead, but not more."""
        return self.last_use <= now + _MOST_AHEAD

    @property
    def words(self) -> str:
        """What the entry is, for people."""
        if (step := self.about.get("step")) and (recipe := self.about.get("recipe")):
            name = self.about.get("name", "").removeprefix(_LAYER_MARK)[:12]
            return f"{recipe}: {step}" + (f" ({name})" if name else "")
        said: list[str] = []
        for text in self.about.values():
            # A reference ends with the digest, and the name of a wheel begins with that of its project.
            if not any(_folded(text) in _folded(other) for other in said):
                said.append(text)
        return _DIGEST.sub(r"\1", " ".join(said)) or self.key[:12]


def _folded(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def entries(store: Store) -> tuple[Listed, ...]:
    """The entries of the shared stores and of this user's, by kind, the last used first.

    Raises nothing: a store that cannot be read has no entries.
    """
    needs = images(store.own)
    found = [
        listed
        for root in (*store.shared, store.own)
        for listed in entries_of(root, store.trusted_uids if root != store.own else frozenset(), needs)
    ]
    order = list(Kind)
    return tuple(sorted(found, key=lambda listed: (order.index(listed.kind), -listed.last_use, listed.key)))


def entries_of(
    root: Path, owners: frozenset[int] = frozenset(), needs: tuple[ImageNeeds, ...] = ()
) -> Iterator[Listed]:
    """The entries of one store, in no order."""
    needed: dict[tuple[Kind, str], list[ImageNeeds]] = {}
    for image in needs:
        for entry in image.entries:
            needed.setdefault(entry, []).append(image)
    for kind in Kind:
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = os.listdir(root / kind)  # noqa: PTH208 - names are wanted
        for key in filter(is_key, names):
            needed_by = tuple(needed.get((kind, key), ()))
            try:
                record, last_use, size = read_entry(root, kind, key, owners)
                yield Listed(root, kind, key, size, last_use, record.about, None, needed_by)
            except OSError as error:
                with contextlib.suppress(OSError):  # it was just removed
                    yield _unusable(root, kind, key, error)


def _unusable(root: Path, kind: Kind, key: str, error: OSError) -> Listed:
    directory = root / kind / key
    status = directory.lstat()
    size = status.st_blocks * 512
    with contextlib.suppress(OSError), os.scandir(directory) as files:
        size += sum(file.stat(follow_symlinks=False).st_blocks * 512 for file in files)
    is_foreign = isinstance(error, Untrusted)
    return Listed(root, kind, key, size, status.st_mtime, {}, error.strerror or str(error), is_foreign=is_foreign)
