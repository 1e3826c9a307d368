"""The dialect of each scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.jobs.dialects.grid_engine import GRID_ENGINE
from toolkit.jobs.dialects.pbs import OPENPBS, TORQUE
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.scheduler.programs import Scheduler

if TYPE_CHECKING:
    from toolkit.jobs.dialects.dialect import Dialect

DIALECTS: dict[Scheduler, Dialect] = {
    Scheduler.SLURM: SLURM,
    Scheduler.GRID_ENGINE: GRID_ENGINE,
    Scheduler.OPENPBS: OPENPBS,
    Scheduler.TORQUE: TORQUE,
}
