"""Free TCP ports for a lab, and the program that uses a requested one."""

from __future__ import annotations

import contextlib
import random
import socket

from toolkit.support.errors import MissingOnHost

# Below the ports that Linux assigns to outgoing connections (from 32768, ip(7)), so that none of those conflicts.
_FROM, _TO = 20_000, 32_000
_TRIES = 200


def choose_ports(count: int, wanted: int | None = None) -> int:
    """The first of `count` consecutive TCP ports that are free on loopback: `wanted`, or any.

    Raises MissingOnHost if one of the wanted ports is in use, or none can be found. The daemons bind them a moment
    later, and another program may bind one first: the caller then tries again.
    """
    if wanted is not None:
        for port in range(wanted, wanted + count):
            if not is_free(port):
                raise MissingOnHost(
                    f"port {port} is in use{_holder(port)}; the lab needs ports {wanted} to {wanted + count - 1}",
                    fix="Omit --port: the lab then uses free ports.",
                    code="port-taken",
                )
        return wanted
    for _ in range(_TRIES):
        first = random.randrange(_FROM, _TO - count)  # noqa: S311 - not a secret
        if all(is_free(port) for port in range(first, first + count)):
            return first
    raise MissingOnHost(f"no {count} consecutive free ports between {_FROM} and {_TO}", code="port-taken")


def is_free(port: int) -> bool:
    """Whether a daemon could listen on 127.0.0.1:`port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As slurmctld and slurmd do: a connection in TIME_WAIT does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _holder(port: int) -> str:
    """' by nginx (process 812)', or nothing if this user may not see it."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            taken = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if taken and connection.pid is not None:
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    return ""
