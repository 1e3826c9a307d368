"""What users and programs read: tables on a terminal, plain lines through a pipe, or one JSON document.

Everything that ctk prints passes here, and much of it comes from others: images, builds, registries, schedulers, file
names. None of it may control the terminal, pass for ctk's own words, or show a credential.
"""

from __future__ import annotations

import json as _json
import math
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from toolkit.support.errors import CheckFailed, CtkError, MissingOnHost, ProgramFailed
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import trace_with, visible_command
from toolkit.support.redaction import redact
from toolkit.support.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import Console

_WIDEST_NAME = 30
_MARKS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.INFO: "·", Severity.OK: "✓"}
# Codes of errors whose explanation says no more than the message: only `--json` shows them.
_GENERAL = {
    *(kind.code for kind in (CtkError, CheckFailed, MissingOnHost, ProgramFailed)),
    *("wrong-usage", "wrong-file", "system-error"),
}
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim", Severity.OK: "green"}


@cache
def console(*, stderr: bool = False) -> Console:
    """The one console of a stream. Rich honours NO_COLOR and leaves out colour if there is no terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width: nothing there may be wrapped or cut.
    width = None if stream.isatty() else 10_000
    return Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=not stream.isatty(), width=width)


def say(text: str = "", *, style: str | None = None, stderr: bool = False) -> None:
    """Print one line for users. `text` is never read as rich markup: it may hold a user's brackets.

    A newline in it comes from a value, and is shown as such: a longer text is said line by line.
    """
    stream = sys.stderr if stderr else sys.stdout
    line = one_line(text, keep="\t")
    if stream.isatty():
        console(stderr=stderr).print(line, style=style, markup=False)
    else:
        print(line, file=stream, flush=True)


def one_line(text: str, *, keep: str = "") -> str:
    """`text` without credentials and with nothing that a terminal interprets, but for the characters in `keep`."""
    return printable(redact(text), keep=keep)


def print_json(schema: str, document: dict[str, Any], findings: Iterable[Finding] = ()) -> None:
    """Print the one JSON document of a command: `schema` first, then `document`, then the findings.

    It is plain ASCII, so that it is valid whatever the terminal's encoding and whatever bytes a file name has. What
    JSON cannot hold is replaced: a number that is not finite by null, a lone surrogate by a question mark.
    """
    whole = {"schema": schema, **document, "findings": [redacted(finding).as_json() for finding in findings]}
    print(_json.dumps(_valid(whole), indent=2, allow_nan=False))


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_valid(key): _valid(item) for key, item in value.items()}
    return [_valid(item) for item in value] if isinstance(value, (list, tuple)) else value


def redacted(finding: Finding) -> Finding:
    """The finding without credentials."""
    return replace(finding, message=redact(finding.message), fix=redact(finding.fix) if finding.fix else None)


def print_text(text: str) -> None:
    """Print a text for a file or a shell, as it is: UTF-8, nothing wrapped, nothing added but a last line's end.

    A file's name in it that is not UTF-8 keeps its bytes. On a terminal it is made printable.
    """
    if sys.stdout.isatty():
        text = printable(text, keep="\n\t")
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    print(text, end="" if text.endswith("\n") else "\n", flush=True)


def print_findings(findings: Iterable[Finding], *, stderr: bool = False) -> None:
    """One finding a paragraph: its mark, what was found, the code of a problem for `ctk explain`, and how to fix it."""
    for finding in findings:
        code = f" [{finding.code}]" if finding.severity in (Severity.ERROR, Severity.WARNING) else ""
        say(f"{_MARKS[finding.severity]} {finding.message}{code}", style=_STYLES[finding.severity], stderr=stderr)
        if finding.fix:
            for line in finding.fix.split("\n"):  # indented: a newline in a value cannot forge a ctk message
                say(f"    {line}", stderr=stderr)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, stderr: bool = False
) -> None:
    """A rich table on a terminal; through a pipe one row a line, with tabs between, for `cut` and `awk`."""
    lines = [[one_line(cell) for cell in row] for row in [columns, *rows]]
    stream = sys.stderr if stderr else sys.stdout
    if not stream.isatty():
        for line in lines:
            print("\t".join(line), file=stream)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", header_style="bold")
    is_name = max(len(line[0]) for line in lines) <= _WIDEST_NAME  # to be copied, and therefore in one piece
    for number, column in enumerate(lines[0]):
        table.add_column(Text(column), overflow="fold", no_wrap=is_name and number == 0)
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    console(stderr=stderr).print(table)


def print_pairs(columns: tuple[str, str], pairs: Iterable[tuple[str, str]], *, title: str | None = None) -> None:
    """Names and values: `name: value` on a terminal, which wraps what is too long; else as `print_table`."""
    if not sys.stdout.isatty():
        print_table(columns, pairs)
        return
    from rich.text import Text

    if title is not None:
        console().print(Text(one_line(title), style="bold"))
    for name, value in pairs:
        line = Text.assemble((f"{one_line(name)}: ", "dim"), one_line(value))
        console().print(line, soft_wrap=True)


@contextmanager
def live_steps(title: str) -> Iterator[Callable[[str], None]]:
    """Show the current step: a live line with the time on a terminal, elsewhere nothing.

    Yields what is to be called with each step that begins.
    """
    if not sys.stderr.isatty():
        yield lambda _step: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(one_line(title), total=None)
        yield lambda step: progress.update(task, description=one_line(f"{title}: {step}"))


def suggest(*commands: list[str] | str) -> None:
    """End a command, on a terminal, with the real next command: its words, or a line that the shell takes as it is."""
    if sys.stdout.isatty():
        for command in commands:
            line = one_line(command) if isinstance(command, str) else visible_command(command)
            console().print(f"Next: {line}", style="cyan", markup=False, soft_wrap=True)


def show_error(error: CtkError, *, json: bool = False) -> None:
    """Print an error: words on standard error, and where JSON was asked for, the document of it on standard output."""
    if json:
        finding = Finding(error.code, Severity.ERROR, error.message, error.fix)
        print_json("ctk.error/1", {"exit_status": error.exit_status}, [finding])
    if isinstance(error, ProgramFailed):
        for line in error.last_lines:
            say(f"  | {line}", stderr=True)
    code = "" if error.code in _GENERAL else f" [{error.code}]"
    _say_lines(f"Error: {error.message}{code}", style="bold red")
    if error.fix:
        _say_lines(error.fix)
    if isinstance(error, ProgramFailed) and error.log is not None:
        say(f"Full log: {error.log}", stderr=True)


def _say_lines(text: str, *, style: str | None = None) -> None:
    """A message of several lines. All but the first are indented: a newline in a value cannot forge a ctk message."""
    first, *more = text.split("\n")
    for line in (first, *(f"  {line}" for line in more)):
        say(line, style=style, stderr=True)


def start_trace() -> None:
    """Print every command line that ctk runs from now on, on standard error (`--trace`)."""
    trace_with(lambda line: say(f"+ {line}", style="dim", stderr=True))
