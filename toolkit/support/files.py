"""How ctk writes files: completely or not at all, and never through a symlink."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import shlex
import shutil
import stat
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

from toolkit.support.durable import sync_descriptor, sync_directory
from toolkit.support.errors import CtkError, MissingOnHost, WrongInput
from toolkit.support.ownership import is_trusted, user_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS_BETWEEN_TRIES = 0.05
_LARGEST_TEXT = 8 * 2**20
FULL = (errno.ENOSPC, errno.EDQUOT)
_OF_DISKS = (*FULL, errno.EIO)
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)  # flock(2) on Lustre that is mounted without `-o flock`


def leads_into_hidden(path: Path) -> Path | None:
    """The real location of `path`, if symlinks in it lead into a hidden directory (`.bashrc.d`), else None.

    Shells and desktops run the files in some of those. A symlink of root's belongs to the site, and may lead
    anywhere, unless this user is root.
    """
    place = Path(path.absolute().anchor)
    for part in path.absolute().parts[1:]:
        there = place / part
        with contextlib.suppress(OSError):
            if there.is_symlink() and (os.geteuid() == 0 or there.lstat().st_uid != 0):
                real = Path(os.path.realpath(there))
                shared = Path(os.path.commonpath([real, os.path.realpath(place)]))
                if any(name.startswith(".") for name in real.relative_to(shared).parts):
                    return real
        place = Path(os.path.realpath(there))
    return None


def refuse_link(path: Path) -> None:
    """Raise WrongInput if `path` is a symlink, even a dangling one, or a symlink leads into a hidden directory.

    A cloned repository may hold `demo.sif.build.log -> ../.bash_profile`, or `defs -> ../.bashrc.d`: what ctk wrote
    there would be run later. Other parent directories may be symlinks: a new file in them replaces nothing.
    """
    if (hidden := leads_into_hidden(path.parent)) is not None:
        raise WrongInput(
            f"cannot write {path}: a symlink in its path leads to the hidden directory {hidden}",
            fix="Remove the link, or write to another directory.",
            code="symlink",
        )
    if path.is_symlink():
        raise WrongInput(
            f"{path} is a symlink to {os.path.realpath(path)}; ctk does not write through symlinks",
            fix=f"Choose another name, or remove the link: rm -- {shlex.quote(str(path))}",
            code="symlink",
        )


def write_atomically(
    path: Path, content: str | bytes | IO[bytes], *, mode: int = 0o644, keep_mode: bool = False, durable: bool = True
) -> None:
    """Write `content` to `path` so that a reader sees the old file or the complete new one, also after a power failure.

    Not `durable`: what can be made again, such as caches, where a power failure may leave a damaged file.

    Text is encoded as UTF-8; file names in it that are not UTF-8 keep their bytes. `mode` is subject to the umask, as
    for any new file; with `keep_mode` an existing file keeps its mode. Raises WrongInput if `path` is a symlink, a pipe
    or a device, or the directory is missing or not writable, and MissingOnHost if the disk is full (`disk-full`) or
    broken.
    """
    import tempfile  # not at the top: commands that only read files start faster

    refuse_link(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise WrongInput(f"{path} is not a regular file", fix="Remove it, or choose another name.", code="not-a-file")
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    kept = _mode_of(path) if keep_mode else None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        if error.errno in _OF_DISKS:
            raise not_written(path, error) from error
        raise WrongInput(
            f"cannot write {path}: {error.strerror}",
            fix=f"{path.parent} must exist and be writable, or choose another directory.",
        ) from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(source, file)
            os.fchmod(file.fileno(), mode & ~current_umask() if kept is None else kept)
            if durable:
                file.flush()
                sync_descriptor(file.fileno(), path)
        temporary.replace(path)
        if durable:
            sync_directory(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, IsADirectoryError):
            raise WrongInput(f"cannot write {path}: it is a directory") from error
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise


def open_log(path: Path) -> TextIO:
    """Open the text file `path` to append to it. It is created if it does not exist, and otherwise not changed yet.

    Raises WrongInput if it is a symlink, has more than one hard link (another user may have linked a file of this user)
    or is not a regular file, MissingOnHost if it cannot be written.
    """
    refuse_link(path)
    try:
        descriptor = _open_to_write(path, os.O_APPEND, 0o666)
    except OSError as error:
        raise not_written(path, error) from error
    status = os.fstat(descriptor)
    if status.st_nlink > 1 or not is_trusted(status.st_uid):
        os.close(descriptor)
        why = "has more than one hard link" if status.st_nlink > 1 else f"belongs to {user_name(status.st_uid)}"
        raise WrongInput(f"{path} {why}", fix="Remove it, or choose another name.")
    return os.fdopen(descriptor, "a", encoding="utf-8", errors="surrogateescape")


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises OSError if it is a symlink or a pipe, which could block forever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_small(path: Path) -> bytes:
    """The content of a file that a person or ctk wrote; symlinks are followed, as users share recipes by them.

    Raises WrongInput if it is not a regular file, which could block forever or never end, or has more than 8 MiB, and
    OSError if it cannot be read.
    """
    with open(path, "rb", opener=open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise WrongInput(
                f"{path} is not a regular file", fix="Remove it, or choose another name.", code="not-a-file"
            )
        content = file.read(_LARGEST_TEXT + 1)
    if len(content) > _LARGEST_TEXT:
        raise WrongInput(f"{path} is larger than {format_size(_LARGEST_TEXT)}", code="wrong-file")
    return content


def open_at_once(path: str, flags: int) -> int:
    """Open without waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _open_to_write(path: Path, flags: int, mode: int) -> int:
    """Open the regular file `path`, and create it if it does not exist. Does not block on a pipe or a device.

    For reading and writing, because NFS requires that for an exclusive lock. Raises OSError, and WrongInput if it is
    not a regular file.
    """
    flags |= os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WrongInput(f"{path} is not a regular file", fix="Remove it, or choose another name.")
    return descriptor


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        return None


def make_directory(path: Path, mode: int = 0o700, above: int = 0o755) -> None:
    """Create a directory and those above it that are missing; others can write to none of them, whatever the umask.

    `above` is the mode of those above it: `Path.mkdir` gives only the last one its mode. Raises OSError.
    """
    if not path.is_dir():
        make_directory(path.parent, above, above)
        path.mkdir(mode=mode, exist_ok=True)


def current_umask() -> int:
    """The umask of this process. Not while other threads create files: it is set for a moment."""
    current = os.umask(0)
    os.umask(current)
    return current


@contextlib.contextmanager
def locked(path: Path, *, taken: CtkError | None = None) -> Iterator[None]:
    """Hold the lock file `path` while the block runs. If another process holds it, wait, or raise `taken` at once.

    The file is neither truncated nor written. Raises WrongInput if it is a symlink or not a regular file, MissingOnHost
    if it cannot be created. On a file system without locks nothing is held.
    """
    refuse_link(path)
    try:
        make_directory(path.parent)
        descriptor = _lock(path, wait=taken is None)
    except BlockingIOError:
        raise taken or AssertionError("a lock without a timeout waits") from None
    except OSError as error:
        raise not_written(path, error) from error
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(path: Path, *, wait: bool) -> int:
    """The descriptor of the locked file. If its previous holder removed it, the file that exists now is locked instead.

    Other users cannot open a new one. An old one that another user has locked is replaced.

    filelock was tried and not taken (4.2.11, 2026-11-22). It opens with O_NOFOLLOW, and a killed holder blocks nobody
    on the same host. But it fails on ENOLCK and EOPNOTSUPP; on ENOSYS it switches to a marker file: it then deletes
    whatever it did not write at that path after 2 s, the log of a build too, and waits forever for a holder that was
    killed on another host. It also locks a FIFO, and waits for another user who locked a world-readable file.
    """
    while True:
        descriptor = _open_to_write(path, 0, 0o600)
        try:
            try:
                hold(descriptor)
            except BlockingIOError:
                if held_by_strangers(descriptor):
                    path.unlink(missing_ok=True)
                elif not wait:
                    raise
                time.sleep(_SECONDS_BETWEEN_TRIES)
                os.close(descriptor)
                continue
            if _is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def hold(descriptor: int) -> None:
    """Lock an open file until it is closed; on a file system without locks nothing is held.

    Raises BlockingIOError if another process holds it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def held_by_strangers(descriptor: int) -> bool:
    """Whether an open file is locked only by processes of other users: flock(2) needs only read permission.

    ctk stays alive while it holds a lock; the process that proc_locks(5) names for another lock may have ended. False
    if this host knows of no lock: the holder is on another host.
    """
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    locks = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    holders = [fields[fields.index(file) - 1] for fields in locks if fields[1] == "FLOCK" and file in fields]
    return bool(holders) and not any(map(_is_trusted_process, holders))


def _is_trusted_process(pid: str) -> bool:
    try:
        return is_trusted(Path("/proc", pid).stat().st_uid)
    except OSError:
        return False


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def format_size(size_bytes: float) -> str:
    """1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size_bytes) < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def not_written(path: Path, error: OSError, fix: str | None = None) -> MissingOnHost:
    """The error of a disk where `path` could not be written: a full one (`disk-full`, with `fix`) or a broken one."""
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return MissingOnHost(
            f"cannot write {path}: {reason} ({format_free(path)})",
            fix=fix
            or "Free some space there, or choose another directory; `quota -s` may show a quota that is used up.",
            code="disk-full",
        )
    return MissingOnHost(f"cannot write {path}: {reason}", code="system-error")


def format_free(path: Path) -> str:
    """What is free on the file system of `path`, which need not exist: '1.5 GiB free'."""
    try:
        status = os.statvfs(nearest_existing(path))
    except OSError as error:  # a disk that fails, or a server that is gone
        return f"free space not known: {error.strerror}"
    files = ", no inodes free" if status.f_files and not status.f_favail else ""
    return f"{format_size(status.f_bavail * status.f_frsize)} free{files}"


def free_space(path: Path) -> int:
    """Bytes that this user can still write on the file system of `path`, which need not exist."""
    return shutil.disk_usage(nearest_existing(path)).free


def require_writable(path: Path) -> None:
    """Raise WrongInput (`not-writable`) if this user cannot make or replace the file `path`: before work for it begins.

    Root may write everywhere but on a read-only disk, which access(2) knows as well.
    """
    directory = nearest_existing(path.parent)
    if not os.access(directory, os.W_OK | os.X_OK):
        owner = user_name(directory.stat().st_uid)
        raise WrongInput(
            f"cannot write {path}: {directory} belongs to {owner}, or is read-only",
            fix="Work in a directory of your own, or copy the project there.",
            code="not-writable",
        )


def nearest_existing(path: Path) -> Path:
    """`path`, or the nearest directory above it that this user sees."""
    while path != path.parent and not os.path.exists(path):  # noqa: PTH110 - Path.exists fails below a directory that this user cannot enter
        path = path.parent
    return path
