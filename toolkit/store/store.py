"""The store: content is found by what it was made from, checked, and published by one rename."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.store.checking import check_entry
from toolkit.store.digests import Digests
from toolkit.store.entries import RECORD, Entry, Kind, Record
from toolkit.store.keeping import keep_in_use
from toolkit.store.publishing import content_name, entry_of, make_entry, writing
from toolkit.store.removing import identity, remove_entry, sweep_removed
from toolkit.support.errors import CtkError, MissingOnHost, WrongInput
from toolkit.support.files import make_directory
from toolkit.support.paths import site_path, user_path
from toolkit.support.staging import staging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site

__all__ = ["Entry", "Kind", "Store", "open_store"]

_VARIABLE = "CTK_STORE"
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_TRIES = 10


def _say_nothing(_note: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Store:
    """This user's store, and those that are shared with other users, which are looked into first and never written.

    `owners` are the users whose files in a shared store are trusted, besides root and this user. `note` is told what is
    ignored or removed, and why.
    """

    own: Path
    shared: tuple[Path, ...] = ()
    owners: tuple[str, ...] = ()
    note: Callable[[str], None] = field(default=_say_nothing, compare=False, repr=False)

    @property
    def digests(self) -> Digests:
        """Digests of large files, remembered in this user's store."""
        return Digests(self.own / "digests")

    @property
    def trusted_uids(self) -> frozenset[int]:
        """The ids of `owners` that this host knows."""
        found = set()
        for name in self.owners:
            with contextlib.suppress(KeyError):
                found.add(pwd.getpwnam(name).pw_uid)
        return frozenset(found)

    def find(self, kind: Kind, key: str) -> Entry | None:
        """The entry with this key, whose content is what its record says; None if there is none.

        It counts as used until this process ends, so that pruning spares it. An entry of this user's store that is
        damaged is removed; one of a shared store that is damaged, or that another user could have written, is ignored.
        """
        for root in self.shared:
            try:
                entry = check_entry(root, kind, key, self.digests, self.trusted_uids)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.note(f"{root / kind / key} is not used: {error.strerror or error}")
                continue
            self.use(entry)
            return entry
        return self._find_own(kind, key)

    def _find_own(self, kind: Kind, key: str) -> Entry | None:
        path = self.own / kind / key
        before = identity(path)
        if before is None:
            return None
        try:
            entry = check_entry(self.own, kind, key, self.digests)
        except OSError as error:
            if identity(path) == before:
                self.note(f"{path} is not used: {error.strerror or error}")
                with contextlib.suppress(OSError):
                    remove_entry(path, self.digests, lambda aside: identity(aside) == before)
            return None
        self.use(entry)
        return entry

    def publish(self, kind: Kind, key: str, file: Path, about: Mapping[str, str]) -> Entry:
        """Move `file` into this user's store and return its entry; an entry that is there already is returned instead.

        `file` is gone afterwards in both cases; it is copied if it is on another file system. A package is kept under
        its own name. Raises WrongInput if that name, the key or `about` is not valid, MissingOnHost (`disk-full`,
        `store-not-writable`), and ProgramFailed (`wrong-hash`) if the content of a package is not what its key says.
        """
        wanted = Record(kind, key, content_name(kind, key, file, about), "", 0, dict(about))
        with self.staging() as directory, writing(self.own):
            made = directory / "entry"
            record = make_entry(made, file, wanted, self.digests)
            (self.own / kind).mkdir(mode=0o755, exist_ok=True)
            for _ in range(_TRIES):
                try:
                    made.rename(self.own / kind / key)
                except OSError as error:
                    if error.errno not in _TAKEN:
                        raise
                else:
                    entry = entry_of(self.own, record)
                    self.use(entry)
                    return entry
                if (there := self._find_own(kind, key)) is not None:
                    return there
        raise MissingOnHost(
            f"{self.own / kind / key} is damaged and cannot be removed",
            fix="Remove that directory.",
            code="store-not-writable",
        )

    def discard(self, kind: Kind, key: str) -> None:
        """Remove an entry of this user's store, whatever it holds, if it is there and can be removed."""
        with contextlib.suppress(OSError):
            remove_entry(self.own / kind / key, self.digests, lambda _: True)

    def use(self, entry: Entry) -> None:
        """Note that an entry is used from now on, until this process ends: pruning spares it, and an hour longer.

        `find` and `publish` do so. A shared store is not written: its owner's pruning goes by its owner's uses.
        """
        keep_in_use(entry.path.parent / RECORD, entry.path, is_own=entry.path.is_relative_to(self.own))

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A directory on the file system of this user's store, for a file to be published; removed with the block.

        Raises MissingOnHost (`disk-full`, `store-not-writable`).
        """
        with contextlib.ExitStack() as stack:
            with writing(self.own):
                make_directory(self.own, 0o755)
                sweep_removed(self.own)
                try:
                    directory = stack.enter_context(staging(self.own))
                except CtkError as error:
                    raise error.__cause__ or error from None
            yield directory


def open_store(area: WorkArea, site: Site, note: Callable[[str], None] = _say_nothing) -> Store:
    """The store of this user in the work area, and the shared ones that CTK_STORE and the site name.

    Raises WrongInput if one of them is no absolute path on this host, or CTK_STORE names a file or the root directory,
    or if a directory of this user's store is a symlink (`symlink`).
    """
    own = area.path / "store"
    for kind in Kind:  # each entry below it would be called damaged, and removed through it
        if (own / kind).is_symlink():
            raise WrongInput(
                f"{own / kind} is a symlink, which ctk does not follow",
                fix="Move the whole work area to the larger disk and set CTK_HOME.",
                code="symlink",
            )
    named = [_named_path(text) for text in os.environ.get(_VARIABLE, "").split(os.pathsep) if text]
    if site.stores is not None:
        named += [site_path(text, "stores", site.stores.origin) for text in site.stores.value]
    # A link of somebody else could lead to another store in the middle of a build: it is followed once.
    real = (Path(os.path.realpath(path)) for path in named)
    shared = tuple(path for path in dict.fromkeys(real) if path != Path(os.path.realpath(own)))
    return Store(own, shared, site.store_owners.value if site.store_owners else (), note)


def _named_path(text: str) -> Path:
    if not text.startswith(("/", "~")):
        raise WrongInput(
            f"{_VARIABLE} contains {text!r}, which is not an absolute path",
            fix=f"Set {_VARIABLE} to absolute paths, separated by colons, or unset it.",
            code="wrong-usage",
        )
    path = user_path(text)
    # One that is missing may be on a file system that is not mounted now: that is a warning (`shared`).
    problem = "the root directory" if os.path.realpath(path) == "/" else "not a directory"
    try:
        is_directory = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        is_directory = error.errno != errno.ENOTDIR
    if is_directory and problem != "the root directory":
        return path
    raise WrongInput(
        f"{_VARIABLE} names {path}, which is {problem}",
        fix=f"Set {_VARIABLE} to the directory that `ctk cache path` prints for the owner of the store, or unset it.",
        code="wrong-usage",
    )
