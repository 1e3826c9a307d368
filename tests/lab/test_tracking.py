"""What each task of a lab gets in its environment."""

from __future__ import annotations

from tests.lab.test_configuration import PLACE, prologue
from toolkit.lab.plan import LabPlan
from toolkit.lab.tracking import MARK_VARIABLE


def test_a_task_gets_open_mpi_settings_unless_they_are_set() -> None:
    given = prologue(LabPlan(), None, {"OMPI_MCA_btl": "self,vader", "PATH": f"{PLACE.programs}:/bin"})
    assert given == {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "lo", MARK_VARIABLE: str(PLACE.directory)}
