"""The overlay that the kernel mounts for a step: what is seen, what is left behind, and what is said where it fails."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.support.overlay import Overlay, Tree
from toolkit.support.programs import find_program
from toolkit.support.staging import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import User

# What a test does as another user: OVERLAY and COMMAND are JSON.
PROGRAM = """
import json, sys
from pathlib import Path
from toolkit.support.namespace import as_owner
from toolkit.support.overlay import Overlay, Tree
from toolkit.support.processes import stream
directory, trees, mounter, network, command = json.loads(sys.argv[1])
for name in ("upper", "work"):
    Path(directory, name).mkdir(parents=True)
overlay = Overlay(Path(directory), tuple(Tree(Path(path), offset) for path, offset in trees), mounter, network)
print("status", stream(as_owner(overlay.command(command)), print), overlay.was_mounted)
"""


@pytest.fixture
def own(user: User, directory: Path) -> Iterator[Path]:
    """A directory whose name has all that separates options of a mount, with two squashfs trees."""
    place = directory / "a,b:c d\\e"
    for number, names in enumerate((("one", "both"), ("both", "two"))):
        tree = place / f"tree{number}"
        tree.mkdir(parents=True)
        for name in names:
            (tree / name).write_text(f"{number}\n")
        words = ("-all-root", "-noappend", "-no-progress", "-quiet")
        subprocess.run(["mksquashfs", tree, place / f"{number}.sqfs", *words], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["chown", "-R", user.name, place], check=True)
    yield place
    remove_tree(place)


def run(user: User, own: Path, command: list[str], *, network: bool = True, mounter: str | None = None) -> str:
    trees = [(str(own / f"{number}.sqfs"), 0) for number in (0, 1)]
    asked = json.dumps([str(own / "step"), trees, mounter or find_program("squashfuse_ll"), network, command])
    return user.run(user.program.with_name("python"), "-c", PROGRAM, asked, cwd=own).stdout


def test_a_command_sees_all_trees_and_changes_only_the_upper_directory(user: User, own: Path) -> None:
    change = "echo new > both; rm one; mkdir d; chown 33:44 d; stat -c %u:%g d"
    script = f"cd step/merged; cat one two both; {change}; exit 7"
    assert run(user, own, ["sh", "-ec", script]).split() == ["0", "1", "1", "33:44", "status", "7", "True"]
    assert sorted(path.name for path in (own / "step/upper").iterdir()) == ["both", "d", "one"]
    assert not any((own / "step/merged").iterdir())
    assert "step/" not in (own / "/proc/self/mountinfo").read_text()


def test_the_end_of_a_command_does_not_wait_for_the_disk(user: User, own: Path) -> None:
    mounts = run(user, own, ["grep", "^overlay .*step/merged", "/proc/self/mounts"])
    assert {"volatile", "fsync=volatile"} & set(mounts.split()[3].split(","))  # the second since Linux 6.18


def test_a_command_without_network_has_its_own_loopback(user: User, own: Path) -> None:
    text = (
        "import socket\nwith socket.create_server(('127.0.0.1', 0)) as s: socket.create_connection(s.getsockname())\n"
        "print([name for _, name in socket.if_nameindex()])"
    )
    lines = run(user, own, [str(user.program.with_name("python")), "-c", text], network=False).splitlines()
    assert lines[-1] == "status 0 True"
    assert "'lo'" in lines[-2]
    assert "eth" not in lines[-2]


def test_the_status_of_a_command_that_a_signal_ended(user: User, own: Path) -> None:
    assert run(user, own, ["sh", "-c", "kill -9 $$"]).splitlines()[-1] == "status 137 True"


def test_processes_and_mounts_end_with_the_command(user: User, own: Path) -> None:
    mark = f"{time.time():.6f}"
    script = f"setsid sh -c 'exec sleep {mark}' > /dev/null 2>&1 & exit 0"
    assert run(user, own, ["sh", "-c", script.replace(mark, "7" + mark)]).splitlines()[-1] == "status 0 True"
    assert not processes("7" + mark)
    assert not processes(str(own))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_and_mounts_end_with_a_caller_that_is_killed(own: Path, me: User, number: signal.Signals) -> None:
    mark = f"9{time.time():.6f}"
    trees = [(str(own / "0.sqfs"), 0)]
    asked = json.dumps([str(own / "step"), trees, find_program("squashfuse_ll"), True, ["sleep", mark]])
    words = me.command(me.program.with_name("python"), "-c", PROGRAM, asked)
    with subprocess.Popen(words, cwd=own, env=me.environment) as caller:
        wait_until(lambda: bool(processes(mark)) and (own / "step/mounted").exists())
        caller.send_signal(number)
    wait_until(lambda: not processes(mark) and not processes(str(own)))


def test_what_fails_is_named_and_told_apart_from_a_failing_command(user: User, own: Path) -> None:
    (own / "1.sqfs").write_bytes(b"hsqs" + bytes(4000))
    lines = run(user, own, ["echo", "ran"]).splitlines()
    assert lines[-1] == "status 125 False"
    assert "1.sqfs" in lines[-2]
    assert "ran" not in lines
    remove_tree(own / "step")
    lines = run(user, own, ["echo", "ran"], mounter="/nowhere/squashfuse").splitlines()
    assert lines[-1] == "status 125 False"
    assert "/nowhere/squashfuse" in lines[-2]


def test_description_keeps_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    described = Overlay(tmp_path / "x", (Tree(tmp_path / "a", 4),), "m").command(["true"])[4]
    assert json.loads(described)["trees"] == [[str(tmp_path / "a"), 4]]


def processes(text: str) -> list[str]:
    """The command lines of processes that have `text` in it, but for this one's callers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in words and "pytest" not in words:
            found.append(words)
    return found


def wait_until(done: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)
