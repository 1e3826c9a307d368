"""The files of a lock, downloaded into the store: several at once, each by its hash."""

from __future__ import annotations

import hashlib
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING

from toolkit.pins.index.answers import refused
from toolkit.pins.index.download import request_file
from toolkit.pins.index.locate import Locator, unreachable
from toolkit.pins.index.retrying import repeat
from toolkit.store.entries import Entry, Kind
from toolkit.support.certificates import tls_context
from toolkit.support.errors import CtkError, MissingOnHost, ProgramFailed
from toolkit.support.files import FULL, format_free
from toolkit.support.paths import LARGER_AREA
from toolkit.support.redaction import server_of
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from toolkit.pins.index.locate import Located, Place, Wanted
    from toolkit.recipes.model import Index
    from toolkit.store.store import Store

_AT_ONCE = 6
_TIMEOUT_SECONDS = 30.0  # without a byte
_BLOCK = 1 << 20
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Brought:
    """`entries` are the files in the store, by their SHA-256; `unlisted` are those that no index is known to have."""

    entries: Mapping[str, Entry]
    unlisted: tuple[Wanted, ...] = ()
    downloaded: int = 0  # bytes


def _nothing(_done: int, _total: int) -> None:
    pass


def kept_files(wanted: Iterable[Wanted], store: Store) -> dict[str, Entry]:
    """The files that the store has, by their SHA-256. Nothing is downloaded."""
    found = {file.sha256: store.find(Kind.PACKAGE, file.sha256) for file in wanted}
    return {sha256: entry for sha256, entry in found.items() if entry is not None}


def bring_files(
    wanted: Sequence[Wanted],
    indexes: Sequence[Index],
    store: Store,
    on_progress: Callable[[int, int], None] = _nothing,
) -> Brought:
    """Download what the store lacks of `wanted`; `on_progress` gets the bytes that are done, and of all.

    Raises ProgramFailed (`index-unreachable`, `certificate`, `malformed-index-page`, `wrong-hash`,
    `packages-not-downloaded` for several) once all others are in the store, MissingOnHost for a full disk.
    """
    entries = kept_files(wanted, store)
    missing = list({file.sha256: file for file in wanted if file.sha256 not in entries}.values())
    if not missing:
        return Brought(entries)
    work = _Download(store, tuple(indexes), on_progress)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            found = list(pool.map(work.locate, missing))
            work.expect(found)
            done = list(pool.map(work.bring, missing, found))
        except BaseException:
            work.stopped.set()  # before the pool waits for its threads
            raise
    problems = [problem for problem in done if isinstance(problem, CtkError)]
    if problems:
        raise _together(problems, len(problems))
    entries |= {entry.key: entry for entry in done if isinstance(entry, Entry)}
    unlisted = tuple(file for file, result in zip(missing, done, strict=True) if result is None)
    return Brought(entries, unlisted, work.done)


@dataclass(slots=True)
class _Download:
    store: Store
    indexes: tuple[Index, ...]
    on_progress: Callable[[int, int], None]
    stopped: threading.Event = field(default_factory=threading.Event)
    done: int = 0
    total: int = 0
    locator: Locator = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)
    silent: dict[str, ProgramFailed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.locator = Locator(self.indexes, self.wait)

    def wait(self, seconds: float) -> None:
        """Wait, unless the work is stopped meanwhile."""
        if self.stopped.wait(seconds):
            raise InterruptedError("stopped")

    def locate(self, wanted: Wanted) -> Located:
        if self.stopped.is_set():
            raise InterruptedError("stopped")
        return self.locator.locate(wanted)

    def expect(self, found: Iterable[Located]) -> None:
        """Add up the sizes that the indexes tell."""
        self.total = sum(place.size or 0 for located in found for place in located.places[:1])

    def count(self, size: int, more: int = 0) -> None:
        with self.lock:
            self.done += size
            self.total = max(self.total + more, self.done)
            self.on_progress(self.done, self.total)

    def bring(self, wanted: Wanted, located: Located) -> Entry | CtkError | None:
        """The file in the store, or why it is not; None if no index lists it."""
        problems: list[CtkError] = list(located.problems)
        for place in located.places:
            try:
                return self._download(wanted, place)
            except MissingOnHost:
                self.stopped.set()
                raise
            except CtkError as error:
                problems.append(error)
        return _together(problems, 1) if problems else None

    def _download(self, wanted: Wanted, place: Place) -> Entry:
        server = server_of(place.url)
        if (earlier := self.silent.get(server)) is not None:
            raise earlier
        with self.store.staging() as directory:
            path = directory / wanted.name
            try:
                sha256 = repeat(lambda: self._write(place, path), self.wait)
            except urllib.error.HTTPError as error:
                raise refused(f"{server} ({wanted.name})", error.code) from error
            except (OSError, HTTPException, ValueError) as error:
                if isinstance(error, OSError) and (error.errno in FULL or error.filename is not None):
                    raise _not_written(self.store.own, error) from error
                if isinstance(error, IncompleteRead):
                    raise unreachable(f"the download of {wanted.name} from {server}", error) from error
                self.silent[server] = unreachable(f"{server}, which has files of the package index,", error)
                raise self.silent[server] from error
            if sha256 != wanted.sha256:
                raise ProgramFailed(
                    f"{wanted.name} from {server} does not have the hash in the lock",
                    fix="A mirror or a proxy may have replaced it. Try again from another network, or use another "
                    "package index.",
                    code="wrong-hash",
                )
            return self.store.publish(Kind.PACKAGE, sha256, path, {"file": wanted.name, "project": wanted.project})

    def _write(self, place: Place, path: Path) -> str:
        """Write the file to `path`; return its SHA-256. Raises OSError, HTTPException."""
        digest, size = hashlib.sha256(), 0
        context = tls_context()
        try:
            request = request_file(place.url, self.indexes)
            with (
                urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=context) as answer,  # noqa: S310
                path.open("wb") as file,
            ):
                said = answer.headers.get("Content-Length") or ""
                expected = int(said) if said.isdecimal() else place.size
                if place.size is None and expected:
                    self.count(0, expected)
                while block := answer.read(_BLOCK):
                    if self.stopped.is_set():
                        raise InterruptedError("stopped")
                    file.write(block)
                    digest.update(block)
                    size += len(block)
                    self.count(len(block))
                    if expected is not None and size > expected:
                        break
            if expected is not None and size < expected:
                raise IncompleteRead(b"", expected - size)
        except BaseException:
            self.count(-size)
            raise
        return digest.hexdigest()


def _not_written(store: Path, error: OSError) -> MissingOnHost:
    if error.errno in FULL:
        return MissingOnHost(
            f"no space left for package files in {store}: {error.strerror} ({format_free(store)})",
            fix=LARGER_AREA,
            code="disk-full",
        )
    return MissingOnHost(
        f"the store {store} cannot be written: {error.strerror}",
        fix="Set CTK_HOME to a writable directory with free space, for example on scratch.",
        code="store-not-writable",
    )


def _together(problems: Sequence[CtkError], files: int) -> CtkError:
    """One error for several: each reason once."""
    reasons = list(dict.fromkeys(problem.message for problem in problems))
    if len(reasons) == 1:
        return problems[0]
    shown = "; ".join(reasons[:_MAX_SHOWN])
    more = f"; and {len(reasons) - _MAX_SHOWN} more" if len(reasons) > _MAX_SHOWN else ""
    what = f"{count(files, 'package file')} could not be downloaded: " if files > 1 else ""
    fixes = dict.fromkeys(problem.fix for problem in problems if problem.fix)
    error = ProgramFailed(f"{what}{shown}{more}", fix=" ".join(fixes) or None, code="packages-not-downloaded")
    codes = {problem.code for problem in problems}
    if len(codes) == 1:
        error.code = codes.pop()
    return error
