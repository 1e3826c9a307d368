"""Ports that are free on this host."""

from __future__ import annotations

import socket

import pytest

from toolkit.lab.ports import choose_ports, is_free
from toolkit.support.errors import MissingOnHost


def test_a_port_is_in_use_while_a_program_listens() -> None:
    first = choose_ports(3)
    assert all(is_free(port) for port in range(first, first + 3))
    with socket.socket() as other:
        other.bind(("0.0.0.0", first + 1))  # noqa: S104 - every address, as daemons do
        other.listen()
        with pytest.raises(
            MissingOnHost, match=rf"port {first + 1} is in use by .* \(process \d+\); .* ports {first} to"
        ):
            choose_ports(3, wanted=first)
        assert choose_ports(1, wanted=first) == first
    assert choose_ports(3, wanted=first) == first
