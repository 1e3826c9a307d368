"""Servers on loopback that send too much, too slowly, or nothing."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def dripping(begin: bytes, again: bytes | None, pause: float, reached: threading.Event | None = None) -> Iterator[str]:
    """The address of a server that sends `begin` to each client, then `again` without an end.

    If that is empty, it sends nothing more, and if it is None, it closes the connection. `reached` is set once a client
    is there.
    """

    def drip(client: socket.socket) -> None:
        if reached is not None:
            reached.set()
        with client, suppress(OSError):
            if again is None:
                client.recv(1 << 16)  # an unread request would reset the connection
            client.sendall(begin)
            while again is not None and (again or client.recv(1 << 16)):
                client.sendall(again)
                time.sleep(pause)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=server.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
