"""Bring a base into the store: pulled once even by several builds, tried again where worth it, read back, published."""

from __future__ import annotations

import contextlib
import random
import re
import time
import urllib.error
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.builds.measuring import bytes_in, measured, packed
from toolkit.builds.progress import PACKING, step_of
from toolkit.builds.reading_back import require_readable
from toolkit.builds.room import UNKNOWN, UNPACKED, Room, RoomWatch, cause, check_room, disks
from toolkit.pins.bases.before_pull import download_size, lent_login
from toolkit.pins.bases.registry import Repository, parse_reference
from toolkit.pins.bases.steady import require_unchanged
from toolkit.recipes.architectures import host_architecture
from toolkit.recipes.model import Bootstrap
from toolkit.runtime.area import SCRATCH_VARIABLES, area_environment, scratch_variable
from toolkit.runtime.transient import is_busy, is_transient
from toolkit.store.store import Kind
from toolkit.support.certificates import trusting
from toolkit.support.content import others_can_change_in, private_copy
from toolkit.support.errors import CtkError, MissingOnHost, ProgramFailed
from toolkit.support.files import locked
from toolkit.support.processes import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolkit.builds.context import Listener
    from toolkit.pins.bases.steady import BaseState
    from toolkit.recipes.model import Base
    from toolkit.runtime.engine import BuildOptions, Runtime
    from toolkit.store.store import Entry, Store
    from toolkit.support.paths import WorkArea

WAITS = (2.0, 8.0, 30.0)  # seconds before each further attempt, about
_LONGEST_WAIT = 120.0  # seconds that a server may ask for
_LONGEST_TURN = 3600.0  # seconds that another process may take; then this one pulls, too
_BETWEEN_LOOKS = 0.5
_DAY = 86_400
_BODY = re.compile(r":\s*\{.*\}$")  # what a registry sent with a status, as the runtime prints it
# What a shared cache of the runtime would keep is a second copy of what the store has.
_CACHES = ("APPTAINER_CACHEDIR", "SINGULARITY_CACHEDIR")


@dataclass(frozen=True, slots=True)
class Maker:
    """What makes images for the store: the runtime with its options, and where."""

    area: WorkArea
    store: Store
    runtime: Runtime
    options: BuildOptions
    listener: Listener


@dataclass(frozen=True, slots=True)
class Source:
    """What an image is made from. `reference` names it in messages; `argument` is the runtime's, which gets the
    directory of the work for a file that the runtime reads.

    `done` is what is done with it, for messages.
    `total` is the bytes of the download, None if they are not known. `ask_again` says how many seconds the registry
    asks to wait. `host` is the registry for the fix of a failure.
    """

    reference: str
    argument: Callable[[Path], str]
    about: Mapping[str, str]
    login: Path | None = None
    total: int | None = None
    ask_again: Callable[[], float | None] = lambda: None
    done: str = "pulled"
    host: str | None = None


def pull_base(base: Base, key: str, before: BaseState | None, maker: Maker) -> Entry:
    """Pull the base, by its digest, into the store under `key`, unless another process does meanwhile.

    Raises ProgramFailed (`base-not-brought`, `image-damaged`), MissingOnHost (`disk-full`) if there is too little room
    for what the registry will send, and CheckFailed if a base on this machine changed.
    """
    reference = base.pinned_reference
    scheme = "docker://" if base.bootstrap == Bootstrap.DOCKER else f"{base.bootstrap}:"
    with turn(maker, key):
        if (there := maker.store.find(Kind.BASE, key)) is not None:
            return there
        total = download_size(base)
        if base.bootstrap == Bootstrap.DOCKER:
            needed = Room(total * UNPACKED, total) if total else UNKNOWN
            check_room(needed, None, maker.area)
        maker.listener.on_step(f"pulling the base {reference}")

        def argument(directory: Path) -> str:
            if not base.is_local or not others_can_change_in(base.path):
                return f"{scheme}{reference}"
            if not (copy := directory / "source").exists():
                private_copy(base.path, copy, maker.area.path / "cache")
            return f"{scheme}{copy}{base.reference.removeprefix(str(base.path))}"

        source = Source(
            reference,
            argument,
            about_base(reference, base.digest),
            login=lent_login(base),
            total=total,
            ask_again=lambda: retry_after(base),
            host=registry_of(base),
        )
        return make(source, key, maker, before)


def about_base(reference: str, digest: str | None) -> dict[str, str]:
    """What the entry of a base says about itself."""
    said = {"reference": reference, "digest": digest or "", "architecture": host_architecture()}
    return {name: text for name, text in said.items() if text}


def make(source: Source, key: str, maker: Maker, before: BaseState | None = None) -> Entry:
    """Let the runtime make the image, read it back and publish it under `key`. Raises as `pull_base` does."""
    with maker.store.staging() as directory:
        image = directory / "image.sif"
        waits = iter(WAITS)
        while (failed := _attempt(source, maker, image, directory)) is not None:
            image.unlink(missing_ok=True)
            wait = next(waits, None)
            if wait is None or not failed.transient:
                raise failed.error
            asked = source.ask_again() if failed.busy else None
            pause(failed.error, f"pulling {source.reference}", failed.reason, wait, asked, maker.listener.note_failed)
            maker.listener.on_step(f"pulling {source.reference} again")
        require_unchanged(before)
        return maker.store.publish(Kind.BASE, key, image, source.about)


def pause(
    error: ProgramFailed, what: str, reason: str, wait: float, asked: float | None, note: Callable[[str], None]
) -> None:
    """Wait before another attempt at `what`, about `wait` seconds or as long as the registry `asked`.

    Raises `error` if that is too long.
    """
    if asked is not None and asked > _LONGEST_WAIT:
        error.fix = (
            f"The registry asks to wait {describe_wait(asked)} before another attempt. {error.fix or ''}".rstrip()
        )
        raise error
    # Builds that failed at once do not come back at once.
    wait = max(wait * random.uniform(0.75, 1.25), asked or 0.0)  # noqa: S311 - not a secret
    note(f"{what} failed ({reason}); trying again in {wait:.0f} s")
    time.sleep(wait)


def describe_wait(seconds: float) -> str:
    """`900 s`, or for what nobody waits for, `more than a day`."""
    return f"{seconds:.0f} s" if seconds <= _DAY else "more than a day"


@dataclass(frozen=True, slots=True)
class _Failed:
    error: ProgramFailed
    reason: str
    transient: bool
    busy: bool = False


def _attempt(source: Source, maker: Maker, image: Path, directory: Path) -> _Failed | None:
    """Make and read back the image; None if it is good. Layers that were downloaded are kept for another attempt."""
    lines: list[str] = []

    def take(line: str) -> None:
        lines.append(line)
        maker.listener.on_line(line)
        if step_of(line) == PACKING:
            maker.listener.on_part(PACKING)

    cache = directory / "cache"
    argv = maker.runtime.build(
        image, source.argument(directory), replace(maker.options, sandbox=False), login=source.login
    )
    environment = {
        **area_environment(maker.area),
        **trusting(),
        # What a killed process leaves there goes with the directory.
        **dict.fromkeys(("TMPDIR", *(() if scratch_variable() else SCRATCH_VARIABLES)), str(directory)),
        **dict.fromkeys(_CACHES, str(cache)),
    }
    look = _progress(directory, cache, source.total)
    with RoomWatch(disks(maker.area, None)).watching() as room, measured(look, maker.listener):
        status = stream(argv, take, env=environment)
    if status != 0:
        error = _not_brought(source, status, lines, room)
        return _Failed(error, _last(lines), is_transient(lines), is_busy(lines))
    try:
        maker.listener.on_step(f"checking the image of {source.reference}")
        what, on_progress = f"the image of {source.reference}", maker.listener.on_progress
        require_readable(image, what, cores=maker.options.cores, on_progress=on_progress)
    except ProgramFailed as damaged:
        return _Failed(damaged, "the packed image is damaged", transient=True)
    return None


def _progress(directory: Path, cache: Path, total: int | None) -> Callable[[], tuple[int, int] | None]:
    """What is to be shown of an attempt: the bytes in the runtime's cache, which is new, then those that are packed."""
    most = 0

    def look() -> tuple[int, int] | None:
        nonlocal most
        if (bytes_packed := packed(directory)) is not None:
            return bytes_packed
        most = max(most, min(total, bytes_in(cache))) if total else 0
        return (most, total) if total and most else None

    return look


@contextlib.contextmanager
def turn(maker: Maker, key: str) -> Iterator[None]:
    """Wait until no other process makes the entry `key`. It only saves work: after an hour nothing is waited for."""
    taken = MissingOnHost("another process makes it")
    lock, said, end = maker.store.own / "locks" / f"{key}.lock", False, time.monotonic() + _LONGEST_TURN
    with contextlib.ExitStack() as held:
        while time.monotonic() < end:
            try:
                held.enter_context(locked(lock, taken=taken))
                break
            except MissingOnHost as error:
                if error is not taken:
                    raise
            if not said:
                maker.listener.on_step("waiting for another ctk command that makes the same base")
                said = True
            time.sleep(_BETWEEN_LOOKS)
        yield


def registry_of(base: Base | None) -> str | None:
    """The registry that has a base; None if no registry has it."""
    return parse_reference(base.reference).host if base is not None and base.bootstrap == Bootstrap.DOCKER else None


def retry_after(base: Base) -> float | None:
    """The seconds that a busy registry asks to wait; None if it does not say it."""
    repository = Repository(parse_reference(base.reference))
    try:
        repository.named(base.digest or repository.reference.tag)
    except urllib.error.HTTPError as error:
        return seconds_of(error.headers.get("Retry-After", ""))
    except (OSError, ValueError, CtkError):
        pass
    return None


def seconds_of(text: str, now: float | None = None) -> float | None:
    """The seconds in a `Retry-After` header: a number or a date (RFC 9110, 10.2.3). None if it is neither."""
    from email.utils import parsedate_to_datetime

    if text.strip().isascii() and text.strip().isdigit():
        return float(text.strip()[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now))
    except (ValueError, OverflowError):
        return None


def _last(lines: Sequence[str]) -> str:
    last = _BODY.sub("", next((line for line in reversed(lines) if line.strip()), "no output").rstrip())
    return last.rpartition(": ")[2].strip()[:80] or last[:80]


def _not_brought(source: Source, status: int, lines: Sequence[str], room: RoomWatch) -> ProgramFailed:
    known = cause(lines, room)
    return ProgramFailed(
        f"the base {source.reference} could not be {source.done} (status {status})"
        + (f": {known.meaning}" if known else ""),
        fix=known.fix_for(source.host) if known else None,
        code="base-not-brought",
        last_lines=tuple(line for line in lines if line.strip())[-12:],
    )
