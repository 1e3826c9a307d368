"""Remove what a layer hides or replaces, in the directory that it is unpacked into.

`python -I clear.py DIRECTORY LIST`: runs in the owners' namespace, hence alone. The list has entries that end with a
zero byte: `d` and a path that the layer has as a directory, or `x` and one that it hides or has as anything else.
Directories come before what is in them: no symlink is followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path


def clear(directory: Path, entries: bytes) -> None:
    """Remove each path of the list in `directory`, but directories that stay directories."""
    for entry in filter(None, entries.split(b"\0")):
        path = directory / os.fsdecode(entry[1:])
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not stat.S_ISDIR(mode):
            path.unlink()
        elif entry[:1] == b"x":
            shutil.rmtree(path)


if __name__ == "__main__":
    clear(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes())
