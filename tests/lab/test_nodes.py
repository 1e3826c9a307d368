"""Nodes of a lab that are killed and restored."""

from __future__ import annotations

import dataclasses
import socket

import pytest

from tests.lab.test_status import LAB
from toolkit.lab.nodes import kill_node, restore_node
from toolkit.lab.status import require_up
from toolkit.support.errors import MissingOnHost


def test_a_lab_that_is_not_up_here_has_no_nodes_to_kill_or_restore() -> None:
    for host, code in (("another-host", "lab-elsewhere"), (socket.gethostname(), "lab-crashed")):
        lab = dataclasses.replace(LAB, host=host)
        for refused in (lambda lab: kill_node(lab, "n1"), lambda lab: restore_node(lab, "n1"), require_up):
            with pytest.raises(MissingOnHost) as caught:
                refused(lab)
            assert caught.value.code == code
