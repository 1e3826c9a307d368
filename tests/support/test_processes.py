"""Other programs: what they print, how they end, and how they are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.support import processes
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.parallel import parallel
from toolkit.support.processes import (
    Completed,
    attach,
    command_line,
    contained,
    conversation,
    run,
    run_contained,
    stream,
    trace_with,
)

pytestmark = pytest.mark.slow


def test_output_status_and_added_environment() -> None:
    done = run(["sh", "-c", 'echo "$GREETING"; echo err >&2; exit 3'], env={"GREETING": "hello"})
    assert (done.returncode, done.stdout, done.stderr, done.ok) == (3, "hello\n", "err\n", False)
    assert run(["sh", "-c", 'test -n "$PATH"'], env={}).ok, "the environment is added to, not replaced"


def test_input_or_none_at_all() -> None:
    assert run(["cat"], input="text").stdout == "text"
    assert run(["cat"], timeout=5).stdout == "", "nothing waits for a terminal"


def test_bytes_that_are_no_text_do_not_hurt() -> None:
    assert run(["printf", r"a\377b"]).stdout == "a\ufffdb"


@pytest.mark.parametrize("how", [run, attach, lambda argv: stream(argv, print)])
def test_a_program_that_is_not_there_or_cannot_run(how: object, tmp_path: Path) -> None:
    with pytest.raises(MissingOnHost, match="the program 'no-such-program' was not found on this host"):
        how(["no-such-program"])  # type: ignore[operator]
    (tmp_path / "closed").write_text("#!/bin/sh\n")
    with pytest.raises(MissingOnHost, match=r"cannot run .*closed: Permission denied"):
        how([str(tmp_path / "closed")])  # type: ignore[operator]
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(MissingOnHost, match=r"cannot run .*text: Exec format error"):
        how([str(tmp_path / "text")])  # type: ignore[operator]


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingOnHost, match="no such directory"):
        run(["true"], cwd=tmp_path / "none")


def test_a_program_that_takes_too_long_is_ended_and_named() -> None:
    started = time.monotonic()
    with pytest.raises(ProgramFailed, match=r"sleep did not finish within 0\.2 s: sleep 30"):
        run(["sleep", "30"], timeout=0.2)
    assert time.monotonic() - started < 5


def test_require_shows_the_last_lines() -> None:
    lines = "".join(f"line {number}\n" for number in range(30))
    with pytest.raises(ProgramFailed, match=r"asking failed: prog exited with status 7") as caught:
        Completed(("prog",), 7, "out", lines).require("asking", fix="do this")
    assert caught.value.last_lines == tuple(f"line {number}" for number in range(18, 30))
    assert caught.value.fix == "do this"
    with pytest.raises(ProgramFailed) as caught:
        Completed(("prog",), 1, "only on stdout\n", "").require("asking")
    assert caught.value.last_lines == ("only on stdout",)
    fine = Completed(("prog",), 0, "", "")
    assert fine.require("asking") is fine


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 41", 41), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
)
def test_attach_passes_the_status_on(script: str, status: int) -> None:
    assert attach(["sh", "-c", script]) == status


def test_ctrl_c_is_the_programs_affair_and_restored_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    answer = attach(["sh", "-c", "trap 'exit 5' INT; kill -INT $$; sleep 5"])
    assert answer == 5
    assert signal.getsignal(signal.SIGINT) is before


ATTACH = """
import signal, sys
from toolkit.support.processes import attach
def interrupt(*_): raise KeyboardInterrupt
signal.signal(signal.SIGTERM, interrupt)
try:
    attach(["sh", "-c", "trap 'echo ended; exit 0' TERM; echo $$; sleep 30 & wait"])
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_a_program_on_the_terminal_ends_with_ctk() -> None:
    child = subprocess.Popen([sys.executable, "-c", ATTACH], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    program = int(child.stdout.readline())
    child.terminate()
    assert child.stdout.readline() == "ended\n"
    assert child.wait(5) == 130
    assert not alive(program)


def alive(pid: int) -> bool:
    """Whether the process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_stream_hands_over_both_streams_in_order_and_the_status() -> None:
    lines: list[str] = []
    status = stream(["sh", "-c", r"echo one; echo two >&2; printf 'three\r\n'; printf last; exit 6"], lines.append)
    assert (status, lines) == (6, ["one", "two", "three", "last"])


def test_an_error_ends_the_whole_session() -> None:
    """The program and its children: a build leaves nothing running."""
    pids: list[int] = []

    def stop(line: str) -> None:
        pids.extend(map(int, line.split()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream(["sh", "-c", "sleep 60 & echo $$ $!; wait"], stop)
    assert len(pids) == 2
    deadline = time.monotonic() + 5
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, pids))


def test_a_program_that_ignores_the_request_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE_SECONDS", 0.2)
    child = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    processes.end_session(child.pid, lambda: child.poll() is not None, grace=0.2)
    assert child.wait(5) == -signal.SIGKILL


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_a_shown_command_is_what_a_shell_reads(words: list[str]) -> None:
    import shlex

    shown = command_line(["printf", *words], {"NAME": words[0]})
    assignment, *rest = shlex.split(shown)
    assert assignment == f"NAME={words[0]}"
    assert rest == ["printf", *words]


def test_trace_hears_every_command_before_it_runs() -> None:
    heard: list[str] = []
    trace_with(heard.append)
    try:
        run(["true"], env={"A": "b c"})
        attach(["true", "x y"])
        stream(["true", "z"], print)
    finally:
        trace_with(None)
    run(["true", "unheard"])
    assert heard == ["A='b c' true", "true 'x y'", "true z"]
    assert "A" not in os.environ


@pytest.fixture(params=["pidfd", "polling"])
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without file descriptors of processes, which some kernels and builds of Python lack."""
    if request.param == "polling":
        monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("waiting")
def test_contained_program_is_waited_for_and_read() -> None:
    with contained(["sh", "-c", "echo out; echo err >&2; exit 3"], env=dict(os.environ)) as wait:
        done = wait(20)
    assert (done.returncode, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", False)
    with pytest.raises(MissingOnHost), contained(["no-such-program"], env={}):
        pass


@pytest.mark.usefixtures("waiting")
def test_contained_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    script = f"echo begun; sleep 60 & echo $! >{tmp_path / 'child'}; wait"
    with contained(["sh", "-c", script], env=dict(os.environ)) as wait:
        done = wait(0.3)
    assert (done.timed_out, done.stdout) == (True, "begun\n")
    _gone(int((tmp_path / "child").read_text()))


def test_contained_program_leaves_nothing_when_the_block_fails(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! >{tmp_path / 'part'}; mv {tmp_path / 'part'} {tmp_path / 'child'}; wait"

    def interrupted() -> None:
        with contained(["sh", "-c", script], env=dict(os.environ)):
            while not (tmp_path / "child").exists():
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    _gone(int((tmp_path / "child").read_text()))


def _gone(pid: int) -> None:
    """Wait until a process is gone, or is only the entry that its parent has not read yet."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z"):
                return
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError(f"{pid} is still there")


def test_contained_program_that_takes_too_long_leaves_nothing(tmp_path: Path) -> None:
    number = tmp_path / "number"
    with pytest.raises(ProgramFailed, match="did not finish within") as caught:
        processes.run_contained(["sh", "-c", f"sleep 100 & echo $! > {number}; wait"], timeout=2)
    assert caught.value.code == "program-timeout"
    _gone(int(number.read_text()))


def test_contained_program_that_prints_too_much_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_MAX_OUTPUT", 1 << 20)
    assert len(processes.run_contained(["head", "-c", "1000000", "/dev/zero"]).stdout) == 1_000_000
    with pytest.raises(ProgramFailed, match="printed more than 1 MiB"):
        processes.run_contained(["head", "-c", "30000000", "/dev/zero"])


def test_contained_program_has_the_environment_and_the_directory(tmp_path: Path) -> None:
    shown = processes.run_contained(
        ["sh", "-c", 'echo "$A ${HOME-unset}"; pwd'], env={"A": "1", "HOME": None}, cwd=tmp_path
    )
    assert shown.stdout == f"1 unset\n{tmp_path}\n"


ANSWERING = r"""
while read -r request; do
    echo "heard $request"
    case $request in end*) exit 7 ;; esac
    printf '\0%s\n' "$request!"
done
echo bye > "$1"
"""


def test_conversation_tells_answers_from_lines_and_an_end_without_one(tmp_path: Path) -> None:
    lines: list[str] = []
    with conversation(["sh", "-c", ANSWERING, "sh", str(tmp_path / "end")], lines.append) as ask:
        assert [ask("one"), ask("two")] == ["one!\n", "two!\n"]
    assert (tmp_path / "end").read_text() == "bye\n"
    with conversation(["sh", "-c", ANSWERING], lines.append) as ask:
        assert [ask("end"), ask("more")] == [7, 7]
    assert lines == ["heard one", "heard two", "heard end"]
    with pytest.raises(MissingOnHost), conversation(["/nowhere/program"], lines.append):
        pass


def test_conversation_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        script = f"sleep 60 & echo $! > {tmp_path}/child; printf '\\0\\n'; wait"
        with conversation(["sh", "-c", script], print) as ask:
            ask("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    _gone(int((tmp_path / "child").read_text()))


def test_a_program_of_a_thread_ends_with_the_work(tmp_path: Path) -> None:
    """With its own children, which an interruption of this process alone would leave."""
    script = "sleep 60 & echo $! > part; mv part child; wait"

    def work(number: int) -> None:
        if number:
            deadline = time.monotonic() + 10
            while not (tmp_path / "child").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            raise ValueError("no")
        run_contained(["sh", "-c", script], cwd=tmp_path)

    start = time.monotonic()
    with pytest.raises(ValueError, match="no"):
        parallel(work, [0, 1], 2)
    assert time.monotonic() - start < 10
    _gone(int((tmp_path / "child").read_text()))
