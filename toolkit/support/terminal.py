"""A terminal for the output of a program: mksquashfs shows all of its progress only there."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import termios
import tty
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# A new terminal has no columns, and mksquashfs shows nothing there.
_SIZE = struct.pack("HHHH", 24, 80, 0, 0)
_ENDS = re.compile(rb"[\r\n]+")


@dataclass(frozen=True, slots=True)
class OpenTerminal:
    """The two ends of a terminal: this process reads from one, a program writes to the other."""

    reading: int
    writing: int

    def lines(self) -> Iterator[str]:
        """The lines that are written, also those that are rewritten, without empty ones; closes `reading` at the end.

        They end when the last program that writes has ended.
        """
        rest = b""
        try:
            while chunk := self._read():
                *lines, rest = _ENDS.split(rest + chunk)
                yield from (line.decode(errors="replace") for line in lines if line)
            if rest:
                yield rest.decode(errors="replace")
        finally:
            os.close(self.reading)

    def _read(self) -> bytes:
        try:
            return os.read(self.reading, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:  # so Linux says that nobody writes any more
                raise
            return b""


def open_terminal() -> OpenTerminal | None:
    """A new terminal, which is nobody's controlling terminal; None if the host gives none (no `/dev/pts`, too many)."""
    try:
        reading, writing = os.openpty()
    except OSError:
        return None
    fcntl.ioctl(writing, termios.TIOCSWINSZ, _SIZE)
    tty.setraw(writing)
    return OpenTerminal(reading, writing)
