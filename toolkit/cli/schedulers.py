"""Which language a job script is written in: of the scheduler that is named, else of this host's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.scheduler.programs import Scheduler, host_scheduler, qsub_scheduler
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.jobs.dialects.dialect import Dialect


def qsub_dialect(named: Scheduler | None) -> Dialect:
    """The dialect of `ctk qsub`. Raises WrongInput for Slurm, and on a host without a qsub."""
    from toolkit.jobs.dialects.known import DIALECTS

    if named is Scheduler.SLURM:
        raise WrongInput("ctk qsub writes for Grid Engine and PBS, not for Slurm", fix="Use ctk sbatch.")
    found = named or qsub_scheduler()
    if found is None:
        raise WrongInput(
            "this host has no qsub, so that nothing says whether to write for Grid Engine or PBS",
            fix="Name the scheduler: --scheduler sge, --scheduler pbs or --scheduler torque.",
        )
    return DIALECTS[found]


def any_dialect(named: Scheduler | None) -> Dialect:
    """The dialect of `ctk script`. Raises WrongInput on a host without a scheduler, unless one is named."""
    from toolkit.jobs.dialects.known import DIALECTS

    found = named or host_scheduler()
    if found is None:
        raise WrongInput(
            "this host has no scheduler, so that nothing says which language to write",
            fix="Name the scheduler: --scheduler slurm, sge, pbs or torque.",
        )
    return DIALECTS[found]
