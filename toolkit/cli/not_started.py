"""The exit status of a shell if the runtime could not start a program: 127, not found, or 126, not executable."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from toolkit.cli.output import print_findings
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from toolkit.runtime.engine import Runtime

# The exit status of the runtime where it could not start the program. A program, such as ssh, may end with it as well.
_RUNTIME_FAILED = 255
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_LOOK = """case $1 in
*/*) [ -e "$1" ] || exit 127; [ -f "$1" ] && [ -x "$1" ] || exit 126 ;;
*) command -v "$1" >/dev/null || exit 127 ;;
esac"""


def status_of(
    status: int,
    runtime: Runtime,
    image: Path,
    words: Sequence[str],
    *,
    binds: Sequence[str],
    environment: Mapping[str, str | None],
    by_shell: bool = False,
) -> int:
    """The exit status of a command in an image; one that could not be started has a shell's, and a message.

    Where the runtime ended with 255, the image is asked, without starting the program, whether it could have been. The
    same where a shell of the image was to become the program (`by_shell`) and ended with its statuses for that.
    """
    from toolkit.inventory.contents.programs import missing_program

    if status != _RUNTIME_FAILED and not (by_shell and status in (_NOT_FOUND, _NOT_EXECUTABLE)):
        return status
    with suppress(WrongInput):  # an image that the runtime can start and ctk cannot read
        if (found := missing_program(image, words, binds)) is not None:
            print_findings([found], stderr=True)
            return _NOT_FOUND
    look = runtime.exec(image, ["/bin/sh", "-c", _LOOK, "sh", words[0]], gpu=False, binds=binds)
    answer = run(look, env=environment).returncode
    if answer not in (_NOT_FOUND, _NOT_EXECUTABLE):
        return status
    what = "is not an executable file" if answer == _NOT_EXECUTABLE else "does not exist in the container"
    fix = "Correct the command. The container sees your home, the working directory, /tmp and the paths of --bind."
    print_findings([Finding("command-not-started", Severity.ERROR, f"{words[0]} {what}", fix)], stderr=True)
    return answer
