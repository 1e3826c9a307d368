"""`ctk check-gpu --log`: on which device a job computed, from its log."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import typer

from toolkit.cli.documents.logs import log_check
from toolkit.cli.output import live_steps, print_findings, print_json, say
from toolkit.gpu.logs.judge import judge_log
from toolkit.gpu.logs.patterns import Kind
from toolkit.gpu.logs.reader import read_log
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.errors import WrongInput
from toolkit.support.files import format_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import BinaryIO, NoReturn

    from toolkit.gpu.logs.judge import Judgement

_ANSWERS = {
    GpuVerdict.USED: ("{log}: the program used the GPU{so}.", "bold green"),
    GpuVerdict.CPU_FALLBACK: ("{log}: the program did not use the GPU{so}.", "bold red"),
    GpuVerdict.START_FAILED: ("{log}: the program failed before it computed on the GPU.", "bold red"),
    GpuVerdict.NOT_VISIBLE: ("{log}: the program was not started: its job had no usable GPU.", "bold red"),
    GpuVerdict.NOT_KNOWN: ("{log} does not say whether the program used the GPU.", "bold yellow"),
}
_MAX_LINES = 12
_STEP = 16 << 20


def check_log(log: Path, image: Path | None, *, json: bool) -> NoReturn:
    """Judge a log (`-`: standard input), print the verdict with the lines that prove it, and exit with its status."""
    if image is not None:
        raise WrongInput("--log reads a log instead of an image: leave out one of them")
    name = "Standard input" if str(log) == "-" else str(log)
    with live_steps(f"Reading {name}") as on_step, _opened(log) as stream:
        seen = read_log(stream, _progress(on_step))
    result = judge_log(seen)
    if json:
        print_json("ctk.check-gpu-log/1", log_check(log, seen, result), result.findings)
    else:
        _print(name, result)
    raise typer.Exit(result.verdict.exit_status)


def _opened(log: Path) -> AbstractContextManager[BinaryIO]:
    if str(log) == "-":
        return nullcontext(sys.stdin.buffer)
    if log.is_dir():
        raise WrongInput(f"{log} is a directory", fix="Name the log of one job.")
    if log.is_char_device() or log.is_block_device():
        raise WrongInput(f"{log} is a device", fix="Name the log of one job, or `-` for standard input.")
    try:
        return log.open("rb")
    except FileNotFoundError:
        raise WrongInput(f"there is no log {log}") from None


def _progress(on_step: Callable[[str], None]) -> Callable[[int], None]:
    shown = 0

    def show(size: int) -> None:
        nonlocal shown
        if size - shown >= _STEP:
            shown = size
            on_step(format_size(size))

    return show


def _print(name: str, result: Judgement) -> None:
    lines = [sighting for sighting in result.evidence if sighting.pattern.kind is not Kind.HARMLESS][:_MAX_LINES]
    for line, text in dict.fromkeys((seen.first, seen.text) for seen in sorted(lines, key=lambda seen: seen.first)):
        say(f"{line}: {text}", style="dim")
    print_findings(result.findings)
    words, style = _ANSWERS[result.verdict]
    say(words.format(log=name, so=": the program says so" if result.only_said else ""), style=style)
