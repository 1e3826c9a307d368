"""What all tests rely on."""

from __future__ import annotations

import signal

# A CI system, nohup or a shell's `&` may start pytest with these ignored, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
