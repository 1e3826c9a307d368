"""What is said of a lab at one moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.lab.paths import LabPaths
from toolkit.lab.plan import LabPlan
from toolkit.lab.registry import Lab
from toolkit.lab.status import log_file
from toolkit.support.errors import WrongInput

LAB = Lab(LabPlan(), LabPaths(Path("/tmp/ctk-lab-abcdefgh")), "host", 20100)


def test_only_a_lab_s_own_daemons_have_logs() -> None:
    assert log_file(LAB, "n4").parent == LAB.place.logs
    for part in ("n5", "slurmctl", "../../etc/passwd"):
        with pytest.raises(WrongInput, match="has no daemon"):
            log_file(LAB, part)
