"""Package files of the store in a build: a read-only directory, from which the guard installs without a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.files import Directory
from toolkit.pins.index.downloads import bring_files, kept_files
from toolkit.pins.lock.files import wanted_files
from toolkit.store.entries import Kind
from toolkit.support.files import format_size
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.state import BuildState
    from toolkit.pins.lock.model import Lock
    from toolkit.store.entries import Entry
    from toolkit.store.store import Store

# Below the directory that is lent to a build; the guard's installer knows HOUSE, too.
HOUSE, STORES = "packages", "stores"


@dataclass(frozen=True, slots=True)
class Wheelhouse:
    """The files of `lock`, in `directory` of this host, which a build sees as `place`.

    The directory holds symlinks to the stores, which are bound beside it. A hard link to a file of a store would change
    its ctime, by which its digest is remembered. `offline`: nothing is downloaded.
    """

    directory: Path
    lock: Lock
    store: Store
    offline: bool = False

    @classmethod
    def of(cls, directory: Path, lock: Lock | None, context: BuildContext) -> Wheelhouse | None:
        """The files of a build in `context`; None if there are none to lend, or the build is only printed."""
        if lock is None or context.preview or not wanted_files(lock):
            return None
        return cls(directory, lock, context.store, context.offline)

    @property
    def files(self) -> tuple[Directory, ...]:
        """The directories to make in the one that is lent."""
        mounts = (self.directory / STORES / str(number) for number in range(len(self._roots)))
        return tuple(map(Directory, (self.directory / HOUSE, self.directory / STORES, *mounts)))

    def binds(self, place: str) -> tuple[str, ...]:
        """The binds of the stores below `place`, where the build sees the directory."""
        return tuple(f"{root}:{place}/{STORES}/{number}:ro" for number, root in enumerate(self._roots))

    @property
    def _roots(self) -> tuple[Path, ...]:
        """The directories of package files in the stores. A bind of one that is missing would end a build."""
        own = self.store.own / Kind.PACKAGE
        for directory in (self.store.own, own):  # not with `parents`: a umask of 002 would let the group write there
            directory.mkdir(mode=0o755, exist_ok=True)
        return (own, *(path for root in self.store.shared if (path := root / Kind.PACKAGE).is_dir()))

    def shell(self) -> str:
        return "# `ctk build` lends the package files of its store here; without them, the build downloads each."

    def run(self, state: BuildState) -> None:
        """Bring the files, and show them to the build. Raises as `bring_files` does."""
        for line in self.fill(state.listener):
            state.note(line)

    def fill(self, listener: Listener) -> tuple[str, ...]:
        """As `run`; the lines are for the log."""
        wanted = wanted_files(self.lock)
        kept = kept_files(wanted, self.store)
        missing = [file for file in wanted if file.sha256 not in kept]
        lines = []
        if kept:
            listener.on_step_done(count(len(wanted) - len(missing), "package file"), 0.0, cached=True)
        if missing and not self.offline:
            listener.on_step(f"downloading {count(len(missing), 'package file')}")
            brought = bring_files(missing, self.lock.indexes, self.store, listener.on_progress)
            kept |= brought.entries
            lines.append(
                f"# {count(len(missing) - len(brought.unlisted), 'package file')} downloaded "
                f"({format_size(brought.downloaded)}), {len(wanted) - len(missing)} in the store"
            )
            lines += [f"# the build itself downloads {file.name}" for file in brought.unlisted]
        self._link(kept)
        return tuple(lines)

    def _link(self, entries: Mapping[str, Entry]) -> None:
        roots = self._roots
        for file in wanted_files(self.lock):
            entry = entries.get(file.sha256)
            number = next((at for at, root in enumerate(roots) if entry and entry.path.is_relative_to(root)), None)
            if entry is None or number is None:
                continue
            # Two indexes may have different files of one name: each is in a directory of its own.
            for shelf in range(len(entries)):
                link = self.directory / HOUSE / str(shelf) / file.name
                if not link.is_symlink():
                    break
            link.parent.mkdir(mode=0o755, exist_ok=True)
            link.symlink_to(Path("../..") / STORES / str(number) / entry.path.relative_to(roots[number]))
