"""The files of a lock, downloaded into the store: several at once, each by its hash."""

from __future__ import annotations

import hashlib
import threading
import urllib.error
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING

from toolkit.pins.index.answers import refused, too_large
from toolkit.pins.index.download import request_file
from toolkit.pins.index.locate import Locator, unreachable
from toolkit.pins.index.retrying import repeat
from toolkit.store.entries import Entry, Kind
from toolkit.support.errors import CtkError, MissingOnHost, ProgramFailed
from toolkit.support.files import FULL, format_free
from toolkit.support.http_client import Limits, TooLarge, blocks, open_url
from toolkit.support.parallel import parallel, wait
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
_LARGEST = 8 << 30  # bytes of a file, whatever is declared
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
    found = parallel(work.locator.locate, missing, _AT_ONCE)
    work.expect(found)
    done = parallel(lambda pair: work.bring(*pair), zip(missing, found, strict=True), _AT_ONCE)
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
    done: int = 0
    total: int = 0
    locator: Locator = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)
    silent: dict[str, ProgramFailed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.locator = Locator(self.indexes)

    def expect(self, found: Iterable[Located]) -> None:
        """Add up the sizes that the indexes tell."""
        self.total = sum(min(place.size or 0, _LARGEST) for located in found for place in located.places[:1])

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
            except MissingOnHost:  # a full disk ends the work
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
                sha256 = repeat(lambda: self._write(place, path), wait)
            except urllib.error.HTTPError as error:
                raise refused(f"{server} ({wanted.name})", error.code) from error
            except TooLarge as error:
                raise too_large(f"the answer of {server} for {wanted.name}", error) from error
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
        largest = _LARGEST if place.size is None else min(place.size, _LARGEST)
        try:
            with open_url(request_file(place.url, self.indexes), Limits(largest)) as answer, path.open("wb") as file:
                declared = answer.length
                if place.size is None and declared and declared <= largest:
                    self.count(0, declared)
                for block in blocks(answer, largest):
                    file.write(block)
                    digest.update(block)
                    size += len(block)
                    self.count(len(block))
            if declared is None and place.size is not None and size < place.size:
                raise IncompleteRead(b"", place.size - size)
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
