"""Which language a job script is written in: of the scheduler that is named, else of this host's."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from toolkit.scheduler.programs import Scheduler, host_scheduler, qsub_scheduler
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from toolkit.jobs.dialects.dialect import Dialect


QSUB = (Scheduler.GRID_ENGINE, Scheduler.OPENPBS, Scheduler.TORQUE)


def qsub_dialect(named: Scheduler | None, cluster: str | None = None) -> Dialect:
    """The dialect of `ctk qsub`: of the scheduler or the cluster that is named, else of this host.

    Raises WrongInput for Slurm, and on a host without a qsub.
    """
    from toolkit.jobs.dialects.known import DIALECTS

    if named is Scheduler.SLURM:
        raise WrongInput("ctk qsub writes for Grid Engine and PBS, not for Slurm", fix="Use ctk sbatch.")
    found = named or _of_cluster(cluster, QSUB if cluster is None else tuple(Scheduler)) or qsub_scheduler()
    if found is Scheduler.SLURM:
        raise WrongInput(
            f"cluster {cluster} has Slurm, and ctk qsub writes for Grid Engine and PBS",
            fix=f"Use `ctk sbatch --cluster {cluster}`.",
            code="wrong-scheduler",
        )
    if found is None:
        raise WrongInput(
            "this host has no qsub, so that nothing says whether to write for Grid Engine or PBS",
            fix="Name the scheduler: --scheduler sge, --scheduler pbs or --scheduler torque. Or the cluster: --cluster "
            f"NAME.{_slurm_is_default()}",
        )
    return DIALECTS[found]


def any_dialect(named: Scheduler | None, cluster: str | None = None) -> Dialect:
    """The dialect of `ctk script`: of the scheduler or the cluster that is named, else of this host.

    Raises WrongInput on a host without a scheduler, if neither is named.
    """
    from toolkit.jobs.dialects.known import DIALECTS

    found = named or _of_cluster(cluster, tuple(Scheduler)) or host_scheduler()
    if found is None:
        raise WrongInput(
            "this host has no scheduler, so that nothing says which language to write",
            fix="Name the scheduler: --scheduler slurm, sge, pbs or torque. Or the cluster: --cluster NAME.",
        )
    return DIALECTS[found]


def job_command(which: Callable[[str], str | None] = shutil.which) -> str:
    """`sbatch` or `qsub`: the command of ctk that writes for the default cluster, else for this host's scheduler."""
    try:
        found = _of_cluster(None, tuple(Scheduler))
    except WrongInput:  # of a file of the user's, which the next command names
        found = None
    if found is not None:
        return "sbatch" if found is Scheduler.SLURM else "qsub"
    return "qsub" if which("qsub") and not which("sbatch") else "sbatch"


def _slurm_is_default() -> str:
    """A hint for users whose default cluster has Slurm."""
    from toolkit.scheduler.profile_places import chosen

    found = chosen(None)
    if found is None or found[1].scheduler is not Scheduler.SLURM:
        return ""
    return f"\nYour default cluster {found[0].name} ({found[0].origin}) has Slurm: use `ctk sbatch`."


def _of_cluster(cluster: str | None, wanted: Collection[Scheduler]) -> Scheduler | None:
    """The scheduler of the cluster that is named, or that the user or the site chose, if it is one of `wanted`."""
    from toolkit.scheduler.profile_places import chosen_profile

    profile = chosen_profile(cluster)
    return profile.scheduler if profile is not None and profile.scheduler in wanted else None
