"""Run other programs: captured or streamed, always as an argument list, never through a shell."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

from toolkit.support.capture import KEPT, Capture, capture_to_end, drain
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.parallel import on_stop
from toolkit.support.redaction import redact, redact_variable
from toolkit.support.text import shorten, visible_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

ANSWER = "\0"  # no other line begins with it: a name of a file in an error message has no such byte
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_MAX_OUTPUT = 64 << 20  # bytes, of a scheduler with some ten thousand nodes
_GRACE_SECONDS = 10.0  # apptainer needs a moment to unmount and to remove its own temporary directories

# These programs outlive this process, so nothing waits for them. Python warns when such a handle is dropped: keep them.
_launched: list[subprocess.Popen[str]] = []
_tracer: Callable[[str], None] | None = None


def trace_with(tracer: Callable[[str], None] | None) -> None:
    """From now on call `tracer` with each command line just before it is run (`--trace`); None disables it."""
    global _tracer
    _tracer = tracer


def command_line(argv: Sequence[str], env: Mapping[str, str | None] | None = None) -> str:
    """The command as a user could type it: `env` holds only the variables that are set for it, or unset (None)."""
    return _joined(argv, env, lambda word: word, lambda _name, value: value, shlex.quote)


def visible_command(argv: Sequence[str], env: Mapping[str, str | None] | None = None) -> str:
    """As `command_line`, to be shown or logged: without credentials, and with every character visible."""
    return _joined(argv, env, redact, redact_variable, visible_word)


def _joined(
    argv: Sequence[str],
    env: Mapping[str, str | None] | None,
    word: Callable[[str], str],
    value: Callable[[str, str], str],
    quote: Callable[[str], str],
) -> str:
    variables = (env or {}).items()
    unset = [part for name, text in variables if text is None for part in ("-u", name)]
    assignments = [f"{name}={quote(value(name, text))}" for name, text in variables if text is not None]
    return " ".join([*assignments, *(quote(word(part)) for part in [*(["env", *unset] if unset else []), *argv])])


@dataclass(frozen=True, slots=True)
class Completed:
    """A program that has exited. `returncode` is negative if a signal ended it, `timed_out` if its time was over.

    `is_cut`: it printed so much that a part is missing.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False
    is_cut: bool = False

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    def require(self, what: str, *, fix: str | None = None) -> Completed:
        """Return self, or raise ProgramFailed saying that `what` failed, with the program's last lines."""
        if self.ok:
            return self
        lines = tuple(map(shorten, (self.stderr.strip() or self.stdout.strip()).splitlines()[-12:]))
        raise ProgramFailed(
            f"{what} failed: {self.argv[0]} exited with status {self.returncode}", fix=fix, last_lines=lines
        )


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    input: str | None = None,
    timeout: float | None = None,
) -> Completed:
    """Run a program to its end and capture what it prints.

    `env` is added to the environment of this process; None unsets a variable. Raises MissingOnHost if there is no
    such program, and ProgramFailed if it takes longer than `timeout` seconds.
    """
    trace(argv, env)
    try:
        done = subprocess.run(
            list(argv),
            env=_merged(env),
            cwd=cwd,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise _cannot_run(argv, cwd, error) from error
    except subprocess.TimeoutExpired as error:
        raise _took_too_long(argv, timeout) from error
    return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def contained(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    kept: int = KEPT,
    changes: Mapping[str, str | None] | None = None,
    step: Callable[[str], str | None] = lambda _: None,
    start_factor: float = 1.0,
) -> Iterator[Callable[[float], Completed]]:
    """Start a program in a session of its own; after the block nothing of the session is left.

    Yields what waits for its end, at most so many seconds, and then ends it. `step` says of the end of what it has
    printed which step it has begun, None before the first: each has so many seconds, the start `start_factor` times as
    many. Of its output, the first and the last part (`kept` bytes) are kept. Its standard input is a pipe without data.
    `env` is its complete environment, of which `--trace` shows `changes`. Raises MissingOnHost if there is no program.
    """
    trace(argv, changes)
    child = _start(argv, cwd, env=dict(env), stderr=subprocess.PIPE)
    started = time.monotonic()
    output, errors = (Capture(cast("IO[bytes]", pipe), kept) for pipe in (child.stdout, child.stderr))

    def ended() -> bool:
        return child.poll() is not None

    def wait(timeout: float) -> Completed:
        begun, since = None, started

        def deadline() -> float:
            nonlocal begun, since
            if (now := step(output.recent()) or begun) != begun:
                begun, since = now, time.monotonic()
            return since + (timeout if begun else timeout * start_factor)

        if timed_out := not capture_to_end(child, (output, errors), deadline):
            end_session(child.pid, ended, grace=1.0)
        status = child.wait()
        drain((output, errors))
        cut = output.dropped or errors.dropped
        return Completed(tuple(argv), status, output.text(), errors.text(), timed_out, cut)

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)

    with child:
        try:
            with on_stop(kill):
                yield wait
        finally:
            if not ended():
                end_session(child.pid, ended, grace=1.0)
            kill()


def run_contained(
    argv: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    timeout: float = math.inf,
) -> Completed:
    """Run a program to its end as `run` does, but in a session of its own, of which nothing is left afterwards.

    Raises MissingOnHost if there is no such program, and ProgramFailed if it takes longer than `timeout` seconds or
    prints more than 64 MiB.
    """
    with contained(argv, env=_merged(env or {}), cwd=cwd, kept=_MAX_OUTPUT, changes=env) as wait:
        done = wait(timeout)
    if done.timed_out:
        raise _took_too_long(argv, timeout)
    if done.is_cut:
        raise ProgramFailed(f"{argv[0]} printed more than {_MAX_OUTPUT >> 20} MiB", code="scheduler-output")
    return done


def launch(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, errors: Path) -> subprocess.Popen[str]:
    """Start a program that outlives this process, in a session of its own.

    Its standard input and output are pipes to this process; its standard error goes into the file `errors`. `env` is
    its complete environment. Raises MissingOnHost if there is no such program, or no space for `errors`.
    """
    trace(argv)
    try:
        with errors.open("wb") as file:
            program = subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
    except OSError as error:
        raise _cannot_run(argv, cwd, error) from error
    _launched.append(program)
    return program


def attach(argv: Sequence[str], *, env: Mapping[str, str | None] | None = None, cwd: Path | None = None) -> int:
    """Run a program on this terminal and return its exit status (128 + N if signal N ended it).

    If this process gets SIGTERM or SIGHUP, it ends the program first.
    """
    trace(argv, env)
    # The terminal sends SIGINT to both processes. The program handles it; this process waits for the program.
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A signal while the program is being started is delivered after the start, so that the program can be ended too.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGHUP))

    def as_before() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        child = subprocess.Popen(list(argv), env=_merged(env), cwd=cwd, preexec_fn=as_before)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            status = child.wait()
        except BaseException:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE_SECONDS)
            child.kill()
            raise
    except OSError as error:
        raise _cannot_run(argv, cwd, error) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, previous)
    return status if status >= 0 else 128 - status


def stream(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    input: Path | None = None,
    terminal: bool = False,
) -> int:
    """Run a program with the file `input`, or nothing, as its standard input; hand each line of its output (both
    streams, in order) to `on_line`, return its exit status.

    `env` is added to the environment of this process; None unsets a variable. The program gets its own session. When
    this process is interrupted, the session is ended first; when this process is killed, the kernel ends the program.
    With `terminal` its output is a terminal, where this host has one to give: some programs show their progress only
    there. A line that is rewritten is a line each time.
    """
    from toolkit.support.terminal import open_terminal

    trace(argv, env)
    opened = open_terminal() if terminal else None
    try:
        with open(input or os.devnull, "rb") as given, contextlib.ExitStack() as ours:
            if opened is not None:
                ours.callback(os.close, opened.writing)
            child = subprocess.Popen(
                list(argv),
                env=_merged(env),
                cwd=cwd,
                stdin=given,
                stdout=subprocess.PIPE if opened is None else opened.writing,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=_dying_with_parent(),
            )
    except OSError as error:
        if opened is not None:
            os.close(opened.reading)
        raise _cannot_run(argv, cwd, error) from error
    with child, _ended_on_error(child):
        for line in cast("IO[str]", child.stdout) if opened is None else opened.lines():
            on_line(line.rstrip("\r\n"))
        return child.wait()


@contextlib.contextmanager
def conversation(argv: Sequence[str], on_line: Callable[[str], None]) -> Iterator[Callable[[str], str | int]]:
    """Start a program that answers requests, each a line of its standard input; it ends with the block.

    Yields what hands it a request, and returns its answer, or its exit status if it ended without one. An answer is a
    line of its output that begins with `ANSWER`; all other lines (of both streams, in order) are handed to `on_line`.
    The program gets its own session, which is ended first when this process is interrupted; when this process is
    killed, the kernel ends the program. Raises MissingOnHost if there is no such program.
    """
    trace(argv)
    child = _start(argv, stderr=subprocess.STDOUT, text=True, errors="replace")
    requests, output = cast("IO[str]", child.stdin), cast("IO[str]", child.stdout)

    def ask(request: str) -> str | int:
        with contextlib.suppress(BrokenPipeError):  # it ended: its status says why
            requests.write(f"{request}\n")
            requests.flush()
        for line in output:
            if line.startswith(ANSWER):
                return line[len(ANSWER) :]
            on_line(line.rstrip("\r\n"))
        return child.wait()

    with child, _ended_on_error(child):
        yield ask
        with contextlib.suppress(BrokenPipeError):
            requests.close()
        child.wait()


@contextlib.contextmanager
def _ended_on_error(child: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        end_session(child.pid, lambda: child.poll() is not None)
        raise


def end_session(leader: int, ended: Callable[[], bool], grace: float = _GRACE_SECONDS) -> None:
    """Send SIGTERM to the session led by process `leader`, and SIGKILL after `grace` seconds."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if ended():
                return
            time.sleep(0.05)


def _start(argv: Sequence[str], cwd: Path | None = None, **options: Any) -> subprocess.Popen[Any]:
    """Start a program with pipes, in a session of its own, which ends with this process."""
    dying, pipe = _dying_with_parent(), subprocess.PIPE
    try:
        return subprocess.Popen(
            list(argv), cwd=cwd, stdin=pipe, stdout=pipe, start_new_session=True, preexec_fn=dying, **options
        )
    except OSError as error:
        raise _cannot_run(argv, cwd, error) from error


def _dying_with_parent() -> Callable[[], object]:
    """What a child calls between fork and exec, so that the kernel ends it with this process."""
    import ctypes  # here, not in the child, which must not import

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _took_too_long(argv: Sequence[str], seconds: float | None) -> ProgramFailed:
    return ProgramFailed(f"{argv[0]} did not finish within {seconds:g} s: {shlex.join(argv)}", code="program-timeout")


def _merged(env: Mapping[str, str | None] | None) -> dict[str, str]:
    if env is None:
        return dict(os.environ)
    return {name: value for name, value in {**os.environ, **env}.items() if value is not None}


def trace(argv: Sequence[str], env: Mapping[str, str | None] | None = None) -> None:
    """Show a command line if `--trace` is given. For programs that other modules start."""
    if _tracer is not None:
        _tracer(visible_command(argv, env))


def _cannot_run(argv: Sequence[str], cwd: Path | None, error: OSError) -> MissingOnHost:
    if cwd is not None and not cwd.is_dir():
        return MissingOnHost(f"cannot run {argv[0]} in {cwd}: no such directory")
    if isinstance(error, FileNotFoundError):
        return MissingOnHost(f"the program {argv[0]!r} was not found on this host")
    return MissingOnHost(f"cannot run {argv[0]}: {error.strerror}")
