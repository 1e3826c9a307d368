"""Processes that publish, find and prune in one store at once, are killed, and meet full disks: the store stays whole.

`python -m tests.soak.store --rounds 20 --kills 200 --disks 50 --seed 1`; a failure names what it repeats with. The
processes are forks, so that a kill costs milliseconds; the full disk is a small tmpfs in a namespace of its own.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.store import digests
from toolkit.store.listing import entries_of
from toolkit.store.pruning import prune
from toolkit.store.store import Entry, Kind, Store
from toolkit.store.verifying import verify
from toolkit.support.errors import MissingOnHost

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = 10
LARGEST = 300_000  # bytes
KINDS = (Kind.BASE, Kind.LAYER, Kind.PACKAGE)


@dataclass(frozen=True)
class Way:
    """How the processes of a round see the machine, and whether they prune."""

    locks: bool = True
    one_host: bool = True
    pruning: bool = False

    def __str__(self) -> str:
        words = ["with flock" if self.locks else "without flock", "one host" if self.one_host else "two hosts"]
        return ", ".join([*words, *(["pruning"] if self.pruning else [])])


WAYS = tuple(Way(locks, one_host) for locks in (True, False) for one_host in (True, False))


def content(number: int, variant: int) -> bytes:
    """What is made for a key: two builds of one layer may differ in their bytes, packages may not."""
    seed = f"{number} {variant}".encode()
    return hashlib.shake_256(seed).digest(1 + number * LARGEST // KEYS)


def key_of(kind: Kind, number: int) -> str:
    text = content(number, 0) if kind is Kind.PACKAGE else f"{kind} {number}".encode()
    return hashlib.sha256(text).hexdigest()


def require_right(entry: Entry, kind: Kind, number: int) -> None:
    """Fail if an entry is not what was made for its key. It may have been pruned meanwhile."""
    with suppress(FileNotFoundError):
        text = entry.path.read_bytes()
        assert text in [content(number, variant) for variant in range(1 if kind is Kind.PACKAGE else 2)], entry.path


def work(store: Store, way: Way, seed: int, actions: int) -> None:
    """Take what the store has of random keys, make what it lacks, and prune now and then."""
    chance = random.Random(seed)  # noqa: S311
    for _ in range(actions):
        kind, number = chance.choice(KINDS), chance.randrange(KEYS)
        key = key_of(kind, number)
        entry = store.find(kind, key)
        if entry is None:
            elsewhere = tempfile.TemporaryDirectory()  # as a rule on another file system than a small disk
            with store.staging() as directory, elsewhere as other:
                file = (directory if chance.random() < 0.5 else Path(other)) / f"package-{number}.whl"
                file.write_bytes(content(number, 0 if kind is Kind.PACKAGE else chance.randrange(2)))
                entry = store.publish(kind, key, file, {"number": str(number)})
        require_right(entry, kind, number)
        if way.pruning and chance.random() < 0.2:
            _prune(store, chance)
        elif chance.random() < 0.05:
            store.discard(kind, key)


def _prune(store: Store, chance: random.Random) -> None:
    """Prune to a random size, as if some entries had not been used for a day."""
    for listed in entries_of(store.own):
        if chance.random() < 0.5:
            with suppress(OSError):
                os.utime(listed.directory / "entry.json", (time.time() - 86400,) * 2)
    prune(store, keep=chance.randrange(KEYS * LARGEST))


def forked(store: Store, way: Way, seed: int, actions: int) -> int:
    """Start `work` in a process of its own, with its own temporary directory; its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(dir=store.own.parent.parent)
        if not way.locks:
            fcntl.flock = _no_locks
        if not way.one_host:
            socket.gethostname = lambda: f"host-{seed % 2}"
        work(store, way, seed, actions)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _no_locks(*_: object) -> None:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def require_whole(store: Store, *, swept: bool = True) -> None:
    """Fail if an entry is damaged or, after the next process swept, something of a killed one is left."""
    found = verify(store)
    assert not found.damaged, found.damaged
    for listed in entries_of(store.own):
        number = int(listed.about["number"])
        entry = Store(store.own).find(listed.kind, listed.key)
        assert entry is not None, listed
        require_right(entry, listed.kind, number)
    if swept:
        for path in store.own.glob(".ctk-work-*"):  # one that was killed before it held its lock stays for an hour
            if not any(path.iterdir()) or [file.name for file in path.iterdir()] == ["lock.new"]:
                os.utime(path, (1, 1))
        prune(store, older=1e9)
        left = [path for path in store.own.rglob("*") if path.name.startswith((".ctk", ".removed"))]
        assert not left, left


def together(place: Path, way: Way, seed: int, *, actions: int = 60) -> None:
    """Two processes with one store at once."""
    store = Store(place / "area" / "store")
    children = [forked(store, way, 2 * seed + number, actions) for number in range(2)]
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert statuses == [0, 0], f"{way}, seed {seed}: a process failed"
    require_whole(store)


def killed(place: Path, seed: int) -> None:
    """A process is killed at a random moment, while another one works; the next one works."""
    store, way = Store(place / "area" / "store"), Way(pruning=seed % 2 == 0)
    chance = random.Random(seed)  # noqa: S311
    victim, other = forked(store, way, 2 * seed, 10_000), forked(store, way, 2 * seed + 1, 20)
    time.sleep(chance.random() * 0.2)
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
    assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 0, f"seed {seed}: the other process failed"
    require_whole(store)


def full(place: Path, seed: int) -> int:
    """`place` is a small disk that becomes full at a random moment. It can be pruned then, and nothing is lost.

    Returns how often the store reported it.
    """
    store, chance = Store(place / "area" / "store"), random.Random(seed)  # noqa: S311
    with suppress(MissingOnHost, OSError):
        work(store, Way(), seed, chance.randrange(20))
    filler = place / "filler"
    with suppress(OSError), filler.open("wb") as file:
        for _ in range(chance.randrange(1, 50)):
            file.write(bytes(chance.randrange(100_000)))
            file.flush()
    codes = []
    for attempt in range(5):
        try:
            work(store, Way(), 1000 * seed + attempt, 20)
        except MissingOnHost as error:
            codes.append(error.code)
        except OSError as error:  # while the file was made
            if error.errno != errno.ENOSPC:
                raise
    assert set(codes) <= {"disk-full"}, codes
    require_whole(store)
    for listed in entries_of(store.own):
        os.utime(listed.directory / "entry.json", (1, 1))
    prune(store, keep=0)
    assert not list(entries_of(store.own)), "a full disk can be pruned"
    filler.unlink()
    work(store, Way(), seed, 5)
    require_whole(store)
    shutil.rmtree(place / "area")
    return len(codes)


def on_small_disk(place: Path, seed: int, count: int) -> None:
    """Run `full` on a tmpfs of 2 MiB that only this program sees."""
    program = (
        f"import pathlib, tests.soak.store as soak; soak.full_disks(pathlib.Path({str(place)!r}), {seed}, {count})"
    )
    script = 'mount -t tmpfs -o size=2m,mode=755 none "$1" && exec "$2" -c "$3"'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    subprocess.run([*argv, place, sys.executable, program], check=True)


def full_disks(place: Path, seed: int, count: int) -> None:
    reported = sum(full(place, seed + number) for number in range(count))
    print(f"full disks: {count}, reported {reported} times", flush=True)
    assert reported


def repeat(what: str, count: int, action: Callable[[int], None]) -> None:
    started = time.monotonic()
    for number in range(count):
        action(number)
    print(f"{what}: {count} times, {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--disks", type=int, default=0)
    parser.add_argument("--prune", action="store_true")
    chosen = parser.parse_args()
    seed = 1000 * chosen.seed
    digests._SETTLED_NS = 0  # what is remembered is used at once
    for way in WAYS:
        way = Way(way.locks, way.one_host, chosen.prune)
        with tempfile.TemporaryDirectory() as place:
            repeat(str(way), chosen.rounds, lambda number: together(Path(place), way, seed + number))  # noqa: B023
    with tempfile.TemporaryDirectory() as place:
        repeat("kills", chosen.kills, lambda number: killed(Path(place), seed + number))
    if chosen.disks:
        with tempfile.TemporaryDirectory() as place:
            on_small_disk(Path(place), seed, chosen.disks)


if __name__ == "__main__":
    main()
