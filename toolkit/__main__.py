"""The command `ctk`, which is `python -m toolkit` too."""

import os
import signal
import sys


def main() -> None:
    """Import ctk and run it."""
    # There is nothing to clean up yet: an interrupt ends the process without a word. Within an import Python would make
    # a traceback of it, or another error with another exit status.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_closed_streams()
    from toolkit.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


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
