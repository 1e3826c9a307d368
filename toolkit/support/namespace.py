"""A user namespace with this user's subordinate ids, in which owners are kept: root there is this user.

`python -I namespace.py COMMAND …` runs a command in it. The mapping is the one of `apptainer --fakeroot` (0 is this
user, 1 to N are the first range of /etc/subuid), so that an owner reads as it does in the container. Supplementary
groups stay, so that files which only a group may read can be read: unshare(1) would drop them.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLONE_NEWUSER = 0x10000000  # linux/sched.h
# Apptainer 1.4.5, internal/pkg/fakeroot/idmap.go: it takes no range with fewer ids.
_LEAST_IDS = 65536
_FILES = {"newuidmap": Path("/etc/subuid"), "newgidmap": Path("/etc/subgid")}
_NO_NAMESPACE = 125  # exit status, as of chroot(1) and env(1) for their own failures


def root_needs_userns() -> bool:
    """Whether the runtime needs `--userns` here: this is root, without all capabilities."""
    return os.geteuid() == 0 and lacks_capabilities()


def lacks_capabilities(status: str | None = None, last: str | None = None) -> bool:
    """Whether this process has fewer capabilities than the kernel knows.

    The texts are /proc/self/status and /proc/sys/kernel/cap_last_cap (proc(5), capabilities(7)).
    """
    status = Path("/proc/self/status").read_text() if status is None else status
    last = Path("/proc/sys/kernel/cap_last_cap").read_text() if last is None else last
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    full = (1 << (int(last) + 1)) - 1
    return effective is None or int(effective[1], 16) & full != full


def as_owner(argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` as root over all of this user's ids; root with all capabilities needs no more.

    It exits with status 125 and says why if there is no such namespace here.
    """
    if os.geteuid() == 0 and not lacks_capabilities():
        return list(argv)
    return [sys.executable, "-I", "-S", __file__, *argv]


def owner_problem() -> str | None:
    """Why owners cannot be kept by this user on this host; None if they can. Runs a trial."""
    # AppArmor may allow the namespace, and no capability in it. Debian gives users no sbin, where chroot(1) is.
    trial = [sys.executable, "-I", "-S", "-c", "import os; os.chroot('/')"]
    command = as_owner(trial)
    if command == trial:
        return None
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return None if done.returncode == 0 else done.stderr.strip() or f"a user namespace ends with {done.returncode}"


def first_range(text: str, uid: int, name: str | None) -> tuple[int, int] | None:
    """Start and length of the first range of a user in /etc/subuid or /etc/subgid that is long enough (subuid(5))."""
    for line in text.splitlines():
        fields = line.strip().split(":")
        if len(fields) == 3 and fields[0] in (name, str(uid)) and fields[1].isdigit() and fields[2].isdigit():
            start, count = int(fields[1]), int(fields[2])
            if count >= _LEAST_IDS:
                return start, count
    return None


def _own_range(path: Path) -> tuple[int, int]:
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = None
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise _Impossible(f"{path} cannot be read ({error.strerror}): this user has no subordinate ids") from error
    found = first_range(text, uid, name)
    if found is None:
        who = name or f"user {uid}"
        raise _Impossible(f"{path} has no line with {_LEAST_IDS} ids for {who}: owners of files cannot be kept")
    return found


class _Impossible(Exception):  # noqa: N818 - a reason, for one line on stderr
    """There is no such namespace here; the text says why."""


def _enter() -> None:
    """Move this process into a namespace with all ids of this user. Raises _Impossible."""
    import ctypes

    maps = []
    for program, path in _FILES.items():
        found = shutil.which(program)
        if found is None:
            raise _Impossible(f"there is no {program} on this host (Debian: uidmap; RHEL: shadow-utils)")
        own = os.geteuid() if program == "newuidmap" else os.getegid()
        maps.append((found, *map(str, (os.getpid(), 0, own, 1, 1, *_own_range(path)))))
    # The programs have to run outside the namespace: a child waits there until this process is inside.
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        _write_maps(wait, maps)
    os.close(wait)
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        error = ctypes.get_errno()
        os.close(go)
        os.waitpid(child, 0)
        raise _Impossible(f"this host does not let users create user namespaces ({os.strerror(error)})")
    os.write(go, b"x")
    os.close(go)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise _Impossible("newuidmap or newgidmap could not map the subordinate ids of this user")


def _write_maps(wait: int, maps: Sequence[Sequence[str]]) -> None:
    status = 1
    try:
        if os.read(wait, 1):
            status = max(subprocess.run(argv, check=False).returncode for argv in maps)
    finally:
        os._exit(min(abs(status), 255))


def main(argv: list[str]) -> None:
    """Run `argv` in the namespace, in place of this process."""
    try:
        _enter()
        os.execvp(argv[0], argv)  # noqa: S606
    except (_Impossible, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(_NO_NAMESPACE)


if __name__ == "__main__":
    main(sys.argv[1:])
