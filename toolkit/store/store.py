"""The store: content is found by what it was made from, checked, and published by one rename."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.store.digests import Digests
from toolkit.store.entries import (
    LARGEST_RECORD,
    RECORD,
    Entry,
    Kind,
    Record,
    is_about,
    is_file_name,
    is_key,
    read_record,
    write_record,
)
from toolkit.store.trusted import open_directory, open_file
from toolkit.support.errors import MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.files import open_regular
from toolkit.support.staging import staging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site

__all__ = ["Entry", "Kind", "Store", "open_store"]

_VARIABLE = "CTK_STORE"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_TRIES = 10


def _say_nothing(_note: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Store:
    """This user's store, and those that are shared with other users, which are looked into first and never written.

    `owners` are the users whose files in a shared store are trusted, besides root and this user. `note` is told what is
    ignored, and why.
    """

    own: Path
    shared: tuple[Path, ...] = ()
    owners: tuple[str, ...] = ()
    note: Callable[[str], None] = field(default=_say_nothing, compare=False, repr=False)

    @property
    def digests(self) -> Digests:
        """Digests of large files, remembered in this user's store."""
        return Digests(self.own / "digests")

    def find(self, kind: Kind, key: str) -> Entry | None:
        """The entry with this key, whose content is what its record says; None if there is none.

        It counts as a use, so that pruning spares it for an hour. An entry of this user's store that is damaged is
        removed; one of a shared store that is damaged, or that another user could have written, is ignored.
        """
        for root in self.shared:
            with contextlib.suppress(FileNotFoundError):
                try:
                    return check_entry(root, kind, key, self.digests, _uids(self.owners))
                except FileNotFoundError:
                    raise
                except OSError as error:
                    self.note(f"{root / kind / key} is ignored: {_reason(error)}")
        try:
            entry = check_entry(self.own, kind, key, self.digests)
        except FileNotFoundError:
            if not os.path.lexists(self.own / kind / key):
                return None
            self.discard(kind, key)
            return None
        except OSError as error:
            self.note(f"{self.own / kind / key} is removed: {_reason(error)}")
            self.discard(kind, key)
            return None
        self.use(entry)
        return entry

    def publish(self, kind: Kind, key: str, file: Path, about: Mapping[str, str]) -> Entry:
        """Move `file` into this user's store and return its entry; an entry that is there already is returned instead.

        `file` is gone afterwards in both cases; it is copied if it is on another file system. A package is kept under
        its own name. Raises MissingOnHost (`store-not-writable`, `disk-full`), and ProgramFailed (`wrong-hash`) if the
        content of a package is not what its key says.
        """
        name = {Kind.BASE: "image.sif", Kind.LAYER: "layer.sqfs"}.get(kind, file.name)
        if not is_key(key) or not is_file_name(name) or not is_about(dict(about)):
            raise WrongInput(f"{file}: cannot be kept as {kind.value}/{key}/{name}")
        with _writing(self.own), self.staging() as directory:
            (directory / "entry").mkdir(mode=0o755)
            # The umask, without changing it for other threads.
            mode = (directory / "entry").stat().st_mode & 0o755 | 0o700
            (directory / "entry").chmod(mode)
            content = directory / "entry" / name
            _move(file, content)
            with open_regular(content) as opened:
                os.fchmod(opened.fileno(), mode & 0o644)
                digest, size = self.digests.of_descriptor(opened.fileno()), os.fstat(opened.fileno()).st_size
            if kind is Kind.PACKAGE and digest != f"sha256:{key}":
                raise ProgramFailed(
                    f"{name} has the hash {digest}, not sha256:{key}",
                    fix="The file was altered on its way. Try again, or use another package index.",
                    code="wrong-hash",
                )
            record = Record(kind, key, name, digest, size, dict(about))
            descriptor = os.open(directory / "entry" / RECORD, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & 0o644)
            with os.fdopen(descriptor, "w") as written:
                written.write(write_record(record))
            (self.own / kind).mkdir(mode=0o755, exist_ok=True)
            for _ in range(_TRIES):
                try:
                    (directory / "entry").rename(self.own / kind / key)
                except OSError as error:
                    if error.errno not in _TAKEN:
                        raise
                else:
                    return Entry(kind, key, self.own / kind / key / name, digest, size, dict(about))
                if (there := self.find(kind, key)) is not None and there.path.is_relative_to(self.own):
                    return there
                self.discard(kind, key)
        raise MissingOnHost(
            f"{self.own / kind / key} cannot be replaced",
            fix="Remove that directory.",
            code="store-not-writable",
        )

    def use(self, entry: Entry) -> None:
        """Note that an entry is used now. Long work repeats it: pruning spares what was used in the last hour."""
        if entry.path.is_relative_to(self.own):
            with contextlib.suppress(OSError):
                os.utime(entry.path.parent / RECORD, follow_symlinks=False)

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A directory on the file system of this user's store, for a file to be published; removed with the block."""
        with _writing(self.own):
            self.own.mkdir(mode=0o755, parents=True, exist_ok=True)
        with staging(self.own) as directory:
            yield directory

    def discard(self, kind: Kind, key: str) -> None:
        """Remove an entry of this user's store, if it is there: first its name, by one rename."""
        with contextlib.suppress(OSError, MissingOnHost, WrongInput), self.staging() as directory:
            (self.own / kind / key).rename(directory / "removed")


def check_entry(root: Path, kind: Kind, key: str, digests: Digests, owners: frozenset[int] = frozenset()) -> Entry:
    """The entry `kind/key` of the store `root`, whose content is what its record says.

    Raises FileNotFoundError if there is none, Untrusted if another user could have written it, and OSError, with the
    reason in words, if it is damaged.
    """
    directory = open_directory(root, (kind.value, key), owners)
    try:
        with os.fdopen(open_file(directory, RECORD, owners), "rb") as file:
            text = file.read(LARGEST_RECORD + 1)
        record = read_record(text) if len(text) <= LARGEST_RECORD else None
        if record is None or (record.kind, record.key) != (kind, key):
            raise OSError(f"its {RECORD} is damaged")
        content = open_file(directory, record.file, owners)
        try:
            if os.fstat(content).st_size != record.size:
                raise OSError("its content is damaged: the size is wrong")
            digest = digests.of_descriptor(content)
        finally:
            os.close(content)
    finally:
        os.close(directory)
    if digest != record.digest or (kind is Kind.PACKAGE and digest != f"sha256:{key}"):
        raise OSError("its content is damaged: the hash is wrong")
    return Entry(kind, key, root / kind / key / record.file, digest, record.size, record.about)


def open_store(area: WorkArea, site: Site) -> Store:  # noqa: ARG001
    """The store of this user in the work area, and the shared ones that CTK_STORE and the site name."""
    named = [Path(text) for text in os.environ.get(_VARIABLE, "").split(os.pathsep) if text.startswith("/")]
    return Store(area.path / "store", tuple(named))


def _uids(owners: tuple[str, ...]) -> frozenset[int]:
    """The ids of the users of these names that this host knows."""
    found = set()
    for name in owners:
        with contextlib.suppress(KeyError):
            found.add(pwd.getpwnam(name).pw_uid)
    return frozenset(found)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _move(file: Path, target: Path) -> None:
    """Rename a regular file to `target`, or copy it and remove it. Raises OSError."""
    open_regular(file).close()
    try:
        file.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with open_regular(file) as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        file.unlink()


@contextlib.contextmanager
def _writing(own: Path) -> Iterator[None]:
    """An OSError while the store is written, as an error for the user."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise MissingOnHost(
                f"no space left for the store in {own}: {error.strerror}",
                fix="`ctk cache prune` removes what was not used for longest. Or set CTK_HOME to a larger disk.",
                code="disk-full",
            ) from error
        raise MissingOnHost(
            f"the store {own} cannot be written: {_reason(error)}",
            fix="Set CTK_HOME to a writable directory with free space, for example on scratch.",
            code="store-not-writable",
        ) from error
