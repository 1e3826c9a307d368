"""`ctk` on a terminal: one process imports it there, and each call is a fork of that process."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Imported while standard output is a terminal, which decides how help and errors are shown.
_SERVER = """
import json, os, sys
import rich.console, rich.table, toolkit.__main__, toolkit.cli.main, toolkit.cli.output
requests, ended = open(int(sys.argv[1])), int(sys.argv[2])
for line in requests:
    arguments, directory, environment, terminal = json.loads(line)
    child = os.fork()
    if child == 0:
        for stream in (0, 1, 2):
            os.dup2(os.open(terminal, os.O_RDWR | os.O_NOCTTY), stream)
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["ctk", *arguments]
        toolkit.__main__.main()
    os.waitpid(child, 0)
    os.write(ended, b".")
"""


class Terminal:
    """Shows what a user sees of a command whose standard input, output and error are a terminal."""

    def __init__(self) -> None:
        read, self._requests = os.pipe()
        self._ended, write = os.pipe()
        self._own, own = pty.openpty()
        argv = [sys.executable, "-c", _SERVER, str(read), str(write)]
        self._server = subprocess.Popen(argv, stdin=own, stdout=own, stderr=own, pass_fds=(read, write))
        for descriptor in (read, write, own):
            os.close(descriptor)

    def show(self, arguments: tuple[str, ...], directory: Path, environment: Mapping[str, str]) -> str:
        terminal, slave = pty.openpty()
        request = [arguments, str(directory), dict(environment), os.ttyname(slave)]
        os.write(self._requests, json.dumps(request).encode() + b"\n")
        shown = b""
        while self._ended not in (ready := select.select([terminal, self._ended], [], [])[0]):
            shown += os.read(ready[0], 65536)
        assert os.read(self._ended, 1), "the server has ended"
        os.close(slave)
        try:
            while part := os.read(terminal, 65536):
                shown += part
        except OSError:  # Linux says EIO at the end of what a closed terminal got
            pass
        os.close(terminal)
        return shown.decode().replace("\r\n", "\n")

    def close(self) -> None:
        os.close(self._requests)
        self._server.wait()
        os.close(self._ended)
        os.close(self._own)
