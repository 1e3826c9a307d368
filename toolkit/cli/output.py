"""What people and programs read: tables on a terminal, plain lines through a pipe, or one JSON document."""

from __future__ import annotations

import json as _json
import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from toolkit.support.errors import CtkError, ProgramFailed
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import command_line, trace_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import Console

_MARKS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.INFO: "·", Severity.OK: "✓"}
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim", Severity.OK: "green"}


@cache
def console(*, stderr: bool = False) -> Console:
    """The one console of a stream. Rich honours NO_COLOR and leaves out colour where there is no terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width: nothing there may be wrapped or cut.
    width = None if stream.isatty() else 10_000
    return Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=not stream.isatty(), width=width)


def say(text: str = "", *, style: str | None = None, stderr: bool = False) -> None:
    """Print words for people. `text` is never read as rich markup: it may hold a person's brackets."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        console(stderr=stderr).print(text, style=style, markup=False)
    else:
        print(text, file=stream, flush=True)


def print_json(schema: str, document: dict[str, Any], findings: Iterable[Finding] = ()) -> None:
    """Print the one JSON document of a command: `schema` first, then `document`, then the findings.

    It is plain ASCII, so that it is valid whatever the terminal's encoding and whatever bytes a file name has.
    """
    whole = {"schema": schema, **document, "findings": [finding.as_json() for finding in findings]}
    print(_json.dumps(whole, indent=2))


def print_text(text: str) -> None:
    """Print a text for a file or a shell, as it is: UTF-8, nothing wrapped, nothing added but a last line's end.

    A file's name in it that is no UTF-8 keeps its octets.
    """
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    print(text, end="" if text.endswith("\n") else "\n")


def print_findings(findings: Iterable[Finding], *, stderr: bool = False) -> None:
    """One finding a paragraph: its mark, what was found, and how to mend it."""
    for finding in findings:
        say(f"{_MARKS[finding.severity]} {finding.message}", style=_STYLES[finding.severity], stderr=stderr)
        if finding.fix:
            say(f"    {finding.fix}", stderr=stderr)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """A rich table on a terminal; through a pipe one row a line, with tabs between, for `cut` and `awk`."""
    if not sys.stdout.isatty():
        for row in [columns, *rows]:
            print("\t".join(row))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


@contextmanager
def live_steps(title: str, *, lines: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is under way: a live line with the time on a terminal; elsewhere nothing, or with `lines` each step.

    Yields what is to be called with each step that begins.
    """
    if not sys.stderr.isatty():
        yield lambda step: say(f"ctk: {step}", stderr=True) if lines else None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda step: progress.update(task, description=f"{title}: {step}")


def suggest(*commands: list[str] | str) -> None:
    """End a command, on a terminal, with the real next command: its words, or a line that the shell takes as it is."""
    if sys.stdout.isatty():
        for command in commands:
            line = command if isinstance(command, str) else command_line(command)
            console().print(f"Next: {line}", style="cyan", markup=False, soft_wrap=True)


def printable(text: str) -> str:
    """`text` on one line: a file's name may hold a newline, or an escape that would repaint the terminal."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def show_error(error: CtkError, *, json: bool = False) -> None:
    """Print an error: words on standard error, and where JSON was asked for, the document of it on standard output."""
    if json:
        finding = Finding(error.code, Severity.ERROR, error.message, error.fix)
        print_json("ctk.error/1", {"exit_status": error.exit_status}, [finding])
    if isinstance(error, ProgramFailed):
        for line in error.last_lines:
            say(f"  | {line}", stderr=True)
    message = "\n".join(map(printable, error.message.split("\n")))
    say(f"Error: {message}", style="bold red", stderr=True)
    if error.fix:
        say(error.fix, stderr=True)
    if isinstance(error, ProgramFailed) and error.log is not None:
        say(f"The whole log: {error.log}", stderr=True)


def start_trace() -> None:
    """Print every command line that ctk runs from now on, on standard error (`--trace`)."""
    trace_with(lambda line: say(f"+ {line}", style="dim", stderr=True))
