"""The command `ctk`, which is `python -m toolkit` too."""

import io
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Import ctk and run it."""
    # There is nothing to clean up yet: an interrupt ends the process without a word. Within an import Python would make
    # a traceback of it, or another error with another exit status.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_closed_streams()
    raw = _Stderr(sys.stderr.fileno(), "w", closefd=False)  # unbuffered: nothing is left to write when Python ends
    sys.stderr = io.TextIOWrapper(raw, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)
    from toolkit.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


class _Stderr(io.FileIO):
    """Standard error. What cannot be written there, as on a full disk or a closed terminal, must not end a command."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or len(data)
        except BrokenPipeError:  # the reader has ended: so does ctk, as other programs do
            raise
        except OSError:
            return len(data)


def _open_closed_streams() -> None:
    """Let a standard stream that the caller closed (`ctk list >&-`) lead to /dev/null.

    Python has None in its place, and the next file that is opened would get its number: it would be written into.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, errors="backslashreplace")  # noqa: SIM115 - open until ctk ends
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()
