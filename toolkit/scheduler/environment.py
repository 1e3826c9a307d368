"""The environment in which ctk runs Slurm's client programs: none of the user's own settings for them.

Most options of sbatch, squeue, sinfo, scontrol and scancel can be set by a variable as well, and some variables change
what the programs print. What ctk asks for and parses must not depend on them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# "INPUT ENVIRONMENT VARIABLES" of the manual pages of Slurm 22.05 to 25.05; srun reads SLURM_*, as all of them do.
_PREFIXES = ("SLURM", "SALLOC_", "SBATCH_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_", "SRUN_")

# How the client programs reach this host's own cluster, and prove who asks.
REACH_CLUSTER = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"})


def is_slurm_variable(name: str) -> bool:
    """Whether a program of Slurm reads or sets the variable `name`."""
    return name.startswith(_PREFIXES)


def clean_environment(
    own: Mapping[str, str] | None = None, *, keep: Collection[str] = REACH_CLUSTER
) -> dict[str, str | None]:
    """Changes to the environment that unset every variable of Slurm but those in `keep`, then set `own`.

    For `toolkit.support.processes.run`, where None unsets a variable. For a cluster that `own` names by SLURM_CONF,
    nothing is kept: a token or a server of this host's own cluster would lead elsewhere.
    """
    own = own or {}
    kept = () if "SLURM_CONF" in own else keep
    return {**{name: None for name in os.environ if is_slurm_variable(name) and name not in kept}, **own}
