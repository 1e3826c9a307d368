"""A writable overlay of squashfs trees, mounted by the kernel for one command of an ordinary user.

Runtimes mount a writable overlay over FUSE with fuse-overlayfs, which changes what a script does (Apptainer 1.4.5). The
kernel can do it too since Linux 5.11, whose overlayfs keeps its notes in `user.overlay.` attributes (`userxattr`;
Documentation/filesystems/overlayfs.rst). So this module mounts each tree with squashfuse and the overlay over them, in
a mount and a PID namespace inside this user's user namespace: all mounts and processes end with the command.

`python -I -S overlay.py DESCRIPTION COMMAND …` does this in the user namespace of `namespace.py`.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MERGED = "merged"  # where the overlay is mounted, in the directory that also has `upper` and `work`
MOUNTED = "mounted"  # a file there that says that the command was started
MOUNTERS = ("squashfuse_ll", "squashfuse")
NO_MOUNTER = "there is no squashfuse on this host, which mounts the base for a step (package squashfuse)"
_FAILED = 125  # exit status, as of chroot(1) and env(1) for their own failures
_TIMEOUT = 30.0  # seconds until a tree is mounted; a loaded machine takes some tenths of a second
# linux/sched.h, linux/mount.h, umount(2), linux/prctl.h, linux/if.h, linux/sockios.h
_CLONE_NEWNS, _CLONE_NEWPID, _CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_MNT_DETACH, _PR_SET_PDEATHSIG = 2, 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


@dataclass(frozen=True, slots=True)
class Tree:
    """A squashfs in a file: its path and its offset in bytes."""

    path: Path
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Overlay:
    """The trees, the lowest first, and the directory on this disk that has the directories `upper` and `work`.

    `mounter` is squashfuse's program. `network`: whether the command has that of the host, or only its own loopback.
    """

    directory: Path
    trees: tuple[Tree, ...]
    mounter: str
    network: bool = True

    @property
    def merged(self) -> Path:
        """Where the command finds the tree."""
        return self.directory / MERGED

    @property
    def was_mounted(self) -> bool:
        """Whether the command was started. Where it was not, the last line of the output says why."""
        return (self.directory / MOUNTED).exists()

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` with the overlay mounted, for `as_owner`.

        It exits as `argv` does, with 128 and the number of the signal if one ended it.
        """
        description = {
            "directory": str(self.directory),
            "trees": [(str(tree.path.absolute()), tree.offset) for tree in self.trees],
            "mounter": self.mounter,
            "network": self.network,
        }
        return [sys.executable, "-I", "-S", __file__, json.dumps(description), *argv]


class _CannotMount(Exception):  # noqa: N818 - a reason, for one line on stderr
    """The overlay cannot be mounted here; the text says why."""


_LIBC = ctypes.CDLL(None, use_errno=True)


def _require(result: int, what: str) -> None:
    if result != 0:
        raise _CannotMount(f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(kind: str, where: str, flags: int, options: str = "") -> None:
    words = [os.fsencode(text) for text in (kind, where, kind, options)]
    _require(_LIBC.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mounting {kind} failed")


def main(description: str, argv: Sequence[str]) -> NoReturn:
    """Run `argv` as described, and exit with its status."""
    asked = json.loads(description)
    namespaces = _CLONE_NEWNS | _CLONE_NEWPID | (0 if asked["network"] else _CLONE_NEWNET)
    try:
        _require(_LIBC.unshare(namespaces), "this host does not let users create mount and PID namespaces")
    except _CannotMount as error:
        _give_up(error)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit_with)
    alive, parent = os.pipe()
    child = os.fork()
    if child == 0:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(parent)
        if not os.read(alive, 1):  # this parent ended before the line above
            os._exit(_FAILED)
        os.close(alive)
        try:
            _run_as_init(asked, argv)
        except (_CannotMount, OSError) as error:
            _give_up(error)
    os.close(alive)
    os.write(parent, b"x")
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except _Ended as error:
        # Returns when the kernel has ended all processes of the namespace.
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os._exit(128 + error.number)
    sys.exit(status if status >= 0 else 128 - status)


class _Ended(BaseException):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _exit_with(number: int, _frame: object) -> None:
    raise _Ended(number)


def _give_up(error: Exception) -> NoReturn:
    print(error, file=sys.stderr, flush=True)
    os._exit(_FAILED)


def _run_as_init(asked: Mapping[str, object], argv: Sequence[str]) -> NoReturn:
    """Mount, run `argv`, and exit: this is process 1 of the namespace, so that all others end with it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the parent decides; a handler is not inherited by the command
    private = _LIBC.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    _require(private, "mounts cannot be made private")
    _mount("proc", "/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    if not asked["network"]:
        _loopback_up()
    home = Path.cwd()
    # Names without a separator of the kernel's options, whatever the directory is called.
    os.chdir(str(asked["directory"]))
    Path(MERGED).mkdir()
    trees = asked["trees"]
    assert isinstance(trees, list)  # noqa: S101
    lowers = [_mount_tree(str(asked["mounter"]), path, offset, number) for number, (path, offset) in enumerate(trees)]
    # volatile (Linux 5.10): otherwise the end of the mount, and each fsync(2) of dpkg, waits until the disk has written
    # all that is dirty, such as the copy of the base. What a step leaves counts only once its layer is packed.
    options = f"lowerdir={':'.join(reversed(lowers))},upperdir=upper,workdir=work,userxattr,volatile"
    _mount("overlay", MERGED, _MS_NODEV, options)
    for lower in lowers:  # the overlay keeps them; a container which gets /tmp does not get them, too
        _require(_LIBC.umount2(os.fsencode(lower), _MNT_DETACH), "a tree cannot be detached")
    os.close(os.open(MOUNTED, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    command = subprocess.Popen(argv, cwd=home)
    while True:
        pid, status = os.wait()
        if pid == command.pid:
            code = os.waitstatus_to_exitcode(status)
            sys.stderr.flush()
            os._exit(code if code >= 0 else 128 - code)


def _mount_tree(mounter: str, path: str, offset: int, number: int) -> str:
    where = Path(f"lower{number}")
    where.mkdir()
    device = where.stat().st_dev
    server = subprocess.Popen(
        [mounter, "-f", "-o", f"allow_other,ro,nosuid,nodev,offset={offset}", path, str(where)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + _TIMEOUT
    while where.stat().st_dev == device:
        if server.poll() is not None or time.monotonic() > deadline:
            raise _CannotMount(f"{Path(mounter).name} could not mount {path} (is /dev/fuse usable?)")
        time.sleep(0.001)
    return str(where)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
