"""The check that a container has the layers of its image, before its program starts: text for a POSIX shell, pure.

A runtime that ignores overlay partitions runs the bare base, and ends with the program's own status. Each layer of ctk
holds a file of its own name, so that a look from inside tells. It costs no second start: the shell becomes the program.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost
from toolkit.support.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CODE = "layer-not-mounted"
# The exit status if a layer is missing: that of ctk for what is missing on this host.
STATUS = MissingOnHost.exit_status
FIX = "Use a host where ctk doctor shows layers as usable, or build a flat image: ctk build NAME --flat"
_WHY = "is not mounted: this runtime or host ignored it, or the file lacks it. The program was not started"
# `sh -c TEXT IMAGE NAME... -- COMMAND...`. It sets no variable: the program would get it if the user exported one of
# that name.
_TEXT = f"""while [ "$1" != -- ]; do
    if [ ! -e "/.singularity.d/$1" ]; then
        printf "BEGIN: %s of %s {_WHY} [{CODE}]\\n%s\\n" "$1" "$0" "{FIX}" >&2
        exit {STATUS}
    fi
    shift
done
shift
exec "$@"
"""
# For job scripts, as all their lines begin; the commands of ctk begin an error otherwise.
CHECK, _CHECK = (_TEXT.replace("BEGIN", begin) for begin in ("ctk", "Error"))
_PRINTED = re.compile(rf"(?:ctk|Error): (\S+) of (.*) {re.escape(_WHY)} \[{CODE}\]")


def checked(command: Sequence[str], image: str, layers: Sequence[str]) -> list[str]:
    """`command` behind a look for the `layers` of `image`; an image without layers is not looked into.

    The program keeps its process, its standard input and its status. If a layer is missing, no program starts, the
    status is `STATUS`, and standard error names the layer. A program that cannot be started ends as in any shell: 127
    if there is none, 126 if it is not executable.
    """
    return ["/bin/sh", "-c", _CHECK, printable(image), *layers, "--", *command] if layers else list(command)


def not_mounted(lines: Iterable[str]) -> MissingOnHost | None:
    """The error that a check printed among these lines of a container's output; None if it printed none."""
    found = next(filter(None, map(_PRINTED.fullmatch, lines)), None)
    return None if found is None else MissingOnHost(f"{found[1]} of {found[2]} {_WHY}", fix=FIX, code=CODE)
