"""Programs that only print, and flush nothing: Python, Python through a pipe, and C behind `--line-buffered`."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PYTHON = """\
import itertools, sys, time
held = []
for n in itertools.count():
    print(sys.argv[1], n)
    held.append(b"x" * (int(sys.argv[2]) if n > 20 else 0))
    time.sleep(0.1)
"""
_C = (
    "#include <stdio.h>\n#include <unistd.h>\n"
    'int main(void) { for (int n = 0;; n++) { printf("c %d\\n", n); usleep(100000); } }\n'
)
OPTION = "--line-buffered"
# All at once, until the job ends. The first one takes so many bytes more with each line.
_LINE = "python3 ./loop.py pipe 0 | tee copy & ./printing & python3 ./loop.py python"
LINE, GROWING = f"{_LINE} 0 & echo begun", f"{_LINE} 40000000"


def write_programs(directory: Path) -> None:
    """What LINE starts, in the directory of the jobs."""
    (directory / "loop.py").write_text(_PYTHON)
    subprocess.run(["gcc", "-o", str(directory / "printing"), "-xc", "-"], input=_C, text=True, check=True)


def are_in(log: str) -> bool:
    """Whether the log has what each of the programs has printed.

    Unbuffered Python writes a line in pieces, so that those of several processes may be mixed.
    """
    return all(re.search(rf"^{name} [3-9]$", log, re.MULTILINE) for name in ("python", "pipe", "c"))
