"""The digest of a file or a directory of this machine, computed once: remembered as long as nothing of it changes.

`ctime` changes with every write and every change of times (`touch -r`), and an ordinary user cannot set it. Only a
write through a shared memory map can leave it as it is. So what another user can change is copied, and the copy hashed,
before anything is made of it (`private_copy`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import time
from typing import TYPE_CHECKING, BinaryIO

from toolkit.support.durable import write_out
from toolkit.support.errors import CheckFailed, CtkError, WrongInput
from toolkit.support.files import make_directory, open_at_once, write_atomically
from toolkit.support.ownership import others_can_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_CHUNK = 1 << 20
# A file that was written just now can be written again within one tick of the file system's clock, and look the same.
_SETTLED = 2_000_000_000  # ns
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

# Name within the whole, device, inode, size in bytes, times in ns.
Stamp = tuple[str, int, int, int, int, int]


def content_digest(path: Path, cache: Path, *, follow: bool = False, fresh: bool = False) -> str:
    """`sha256:…` of a file's content, or of all names, modes and contents in a directory.

    With `follow`, of what `cp -rL` copies: modes and contents of what symlinks lead to, the mode of a single file, too.
    With `fresh`, what is remembered is not used. Raises WrongInput if something cannot be read, and CheckFailed
    (`base-changed`) if something changes during the read.
    """

    def compute() -> str:
        single = path.is_file() and not follow
        return f"sha256:{_file_digest(path) if single else _tree_digest(path, follow=follow)}"

    return _kept(path, cache, follow, compute, follow=follow, fresh=fresh)


def part_digest(path: Path, cache: Path, part: str, compute: Callable[[], str]) -> str:
    """The digest of a part of a file that `compute` reads, remembered under the name `part`. Raises as above."""
    return _kept(path, cache, part, compute)


def _note(stamps: list[Stamp], cache: Path, what: object) -> Path:
    return cache / "digests" / hashlib.sha256(json.dumps([what, stamps]).encode()).hexdigest()


def _kept(
    path: Path, cache: Path, what: object, compute: Callable[[], str], *, follow: bool = False, fresh: bool = False
) -> str:
    stamps = stamps_of(path, follow=follow)
    kept = _note(stamps, cache, what)
    if not fresh and (known := _remembered(kept)) is not None:
        return known
    try:
        digest = compute()
    except OSError as error:
        raise _unreadable(path, error) from error
    if stamps_of(path, follow=follow) != stamps:
        raise CheckFailed(
            f"{path} changed while ctk read it",
            fix="Run the command again when no process writes to it.",
            code="base-changed",
        )
    if time.time_ns() - max(changed for *_, changed in stamps) > _SETTLED:
        with contextlib.suppress(OSError, CtkError):  # it only saves work
            make_directory(kept.parent)
            write_atomically(kept, digest, durable=False)
    return digest


def stamps_of(path: Path, *, follow: bool = False) -> list[Stamp]:
    """What changes if `path` or something in it does. Raises WrongInput if something cannot be read."""
    try:
        return [
            (name, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            for name, _, status in walk(path, follow=follow)
        ]
    except OSError as error:
        raise _unreadable(path, error) from error


def state_of_copied(sources: Iterable[Path]) -> str:
    """A hash that changes if something that is copied is written to or replaced, even if it is undone later.

    Raises as `stamps_of` does.
    """
    return hashlib.sha256(json.dumps([stamps_of(source, follow=True) for source in sources]).encode()).hexdigest()


def others_can_change_in(path: Path, *, follow: bool = False) -> bool:
    """Whether a user other than this one and root can write to the file `path`, or to a file in it.

    Who can write to a directory alone can only put other files there, which have other stamps. Raises WrongInput if
    something cannot be read.
    """
    try:
        found = (status for _, _, status in walk(path, follow=follow))
        return any(stat.S_ISREG(status.st_mode) and others_can_change(status) for status in found)
    except OSError as error:
        raise _unreadable(path, error) from error


def private_copy(source: Path, copy: Path, cache: Path, *, follow: bool = False) -> None:
    """Copy a file or a directory to the new path `copy`, in a directory of this user, and compare it with its digest.

    Owners are not kept; all that is in the digest is (`content_digest`). Raises WrongInput if something cannot be read,
    CheckFailed (`base-changed`) if the copy does not have the digest, and OSError where it cannot be written.
    """
    digest = content_digest(source, cache, follow=follow)
    closed: list[tuple[Path, int]] = []
    for name, path, status in walk(source, follow=follow):
        here, mode = copy / name if name else copy, stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            here.mkdir(0o700)
            closed.append((here, mode))
        elif stat.S_ISLNK(status.st_mode):
            here.symlink_to(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            _copy_file(path, here, mode)
        else:  # a pipe, a socket, or with root a device
            os.mknod(here, status.st_mode, status.st_rdev)
            here.chmod(mode)
    for here, mode in reversed(closed):
        here.chmod(mode)
    if content_digest(copy, cache, follow=follow) != digest:
        raise changed_unseen(source, cache, follow=follow)


def changed_unseen(source: Path, cache: Path, *, follow: bool = False) -> CheckFailed:
    """The error for a file whose copy does not have its digest, which is forgotten."""
    with contextlib.suppress(OSError, CtkError):
        _note(stamps_of(source, follow=follow), cache, follow).unlink()
    return CheckFailed(
        f"{source} does not have the content that ctk read before, and its times are the same",
        fix="Another user can write to it. Run the command again when nobody does, or start from a copy of your own.",
        code="base-changed",
    )


def _copy_file(source: Path, copy: Path, mode: int) -> None:
    try:
        file = open(source, "rb", opener=open_at_once)  # noqa: SIM115
    except OSError as error:
        raise _unreadable(source, error) from error
    with file, copy.open("xb") as target:
        shutil.copyfileobj(file, target, _CHUNK)
        target.flush()  # a write after it would take the setuid bit
        os.fchmod(target.fileno(), mode)


def walk(root: Path, *, follow: bool = False) -> Iterator[tuple[str, Path, os.stat_result]]:
    """`root`, which is followed, and all that is in it at any depth: the name within the whole, the path, the status.

    With `follow`, symlinks are what they lead to, if there is anything; one that leads to a directory around it has
    nothing in it. Without, directories that may not be read are empty. Raises OSError.
    """
    waiting: list[tuple[str, Path, tuple[tuple[int, int], ...]]] = [("", root, ())]
    while waiting:
        name, path, above = waiting.pop()
        try:
            status = path.stat() if follow or not name else path.lstat()
        except OSError:
            status = path.lstat()  # a symlink to nothing
        yield name, path, status
        identity = (status.st_dev, status.st_ino)
        if not stat.S_ISDIR(status.st_mode) or identity in above:
            continue
        below = (*above, identity) if follow else ()
        try:
            inside = sorted(os.listdir(path), reverse=True)  # noqa: PTH208 - names are enough
        except PermissionError:
            if follow:
                raise
            continue
        waiting += [(f"{name}/{child}" if name else child, path / child, below) for child in inside]


def _tree_digest(root: Path, *, follow: bool) -> str:
    """Each entry is a line of JSON, which keeps name, mode and content apart."""
    digest = hashlib.sha256()
    for name, path, status in walk(root, follow=follow):
        content = ""
        if stat.S_ISLNK(status.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(status.st_mode):  # to read a pipe or a device would take forever
            content = _file_digest(path)
        digest.update(json.dumps([name, status.st_mode, content]).encode() + b"\n")
    return digest.hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        write_out(file.fileno())  # before the digest is: a power failure must not leave that alone
        return _digest_of(file)


def _digest_of(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _remembered(kept: Path) -> str | None:
    """What a note says; None if there is none, or it is damaged, as after a power failure."""
    try:
        text = kept.read_text() if kept.is_file() else ""
    except (OSError, ValueError):
        return None
    return text if _DIGEST.fullmatch(text) else None


def _unreadable(path: Path, error: OSError) -> WrongInput:
    return WrongInput(f"cannot read {error.filename or path}: {error.strerror}")
