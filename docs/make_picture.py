"""Make docs/terminal.svg from what real commands really print: `python docs/make_picture.py IMAGE.sif`.

IMAGE is any image; the picture in the README shows one in which somebody said `pip install jax`.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

_COLUMNS = 112
_PICTURE = Path(__file__).with_name("terminal.svg")
_SCRIPT = "import timm\nimport torch\nfrom sklearn.metrics import accuracy_score\n"
_COMMANDS = (
    "ctk new mine --from train.py",
    "ctk audit trial.sif",
    "ctk sbatch --job-name trial --gpus 1 --time 2:00:00",
    "ctk sbatch --job-name trial --gpus 0 --time 2:00:00",
)


def main(image: Path) -> None:
    """Run the commands beside a script and a copy of `image` called trial.sif, and draw them with their output."""
    screen = Console(record=True, width=_COLUMNS, file=Path(os.devnull).open("w"))  # noqa: SIM115 - ends with us
    # Not in /tmp: ctk would rightly warn that compute nodes do not see it.
    with tempfile.TemporaryDirectory(dir=Path.home()) as directory:
        (Path(directory) / "train.py").write_text(_SCRIPT)
        shutil.copy(image, Path(directory) / "trial.sif")
        for command in _COMMANDS:
            screen.print(Text.assemble(("$ ", "dim"), (command, "bold")))
            # Where the temporary directory lies is of no interest to a reader.
            output = output_of(command, Path(directory)).replace(f"{directory}/", "")
            lines = Text.from_ansi(output).split("\n")
            # What a terminal shows only while the command works begins with a spinner.
            kept = [line for line in lines if not re.match("[\u2800-\u28ff]", line.plain)]
            screen.print(Text("\n").join(kept), soft_wrap=True)
            screen.print()
    svg = screen.export_svg(title="ctk", theme=MONOKAI, unique_id="ctk")
    # The reader's own fixed-width font will do: a page that shows the picture should fetch nothing from elsewhere.
    _PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


def output_of(command: str, directory: Path) -> str:
    """All that `command` prints on a terminal of `_COLUMNS` columns; its exit status does not matter."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, _COLUMNS, 0, 0))
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PATH": search}
    process = subprocess.Popen(
        shlex.split(command), cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    printed = b""
    try:
        while piece := os.read(ours, 65536):
            printed += piece
    except OSError:  # a terminal whose other end is closed gives EIO, not an empty read
        pass
    process.wait()
    os.close(ours)
    return printed.decode().replace("\r\n", "\n").rstrip("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
