"""The command `ctk`, which is `python -m toolkit` too."""

import signal


def main() -> None:
    """Import ctk and run it."""
    # There is nothing to clean up yet: an interrupt ends the process without a word. Within an import Python would make
    # a traceback of it, or another error with another exit status.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from toolkit.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
