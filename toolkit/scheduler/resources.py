"""The resources of a job: one table of options, which recipes, jobs, scripts and submission read.

The terms are neutral, the names of the options are sbatch's; each dialect of `toolkit.jobs` writes them in its own
language. A new option is a field of Resources, its check in `toolkit.scheduler.values`, and a parameter in
`toolkit.cli.sbatch`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from toolkit.scheduler.values import (
    Array,
    Gpus,
    check_account,
    check_count,
    check_partition,
    check_qos,
    check_time,
    parse_array,
    parse_gpus,
    parse_memory,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `name` is what sbatch and `ctk sbatch` call it, without the dashes.

    `check` takes what a user wrote, and the name for an error: of the option, or of the recipe's key. `in_recipe` is
    what [job] of a recipe may hold for it: text, a number from 1 on, or GPUs; None: nothing. `variable` sets a user's
    own default for all jobs (sbatch(1), INPUT ENVIRONMENT VARIABLES), and stays where the job leaves the choice open.
    """

    name: str
    check: Callable[[Any, str], Any]
    in_recipe: type | None = None
    variable: str | None = None


def _option(
    name: str, check: Callable[[Any, str], Any], in_recipe: type | None = None, *, variable: str | None = None
) -> Any:
    return field(default=None, metadata={"option": Option(name, check, in_recipe, variable)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a job gets; None leaves the choice to the site. The order is that of the lines in a script.

    `nodes` is a number of nodes, `tasks_per_node` that of the processes on each, `cpus_per_task` that of the cores of
    each process. `gpus` are those of the whole job. `time` is in seconds, NO_TIME_LIMIT for none. `mem` is per node: a
    number and K, M, G or T, or `0` for all that a node has. `partition` is a queue.
    """

    array: Array | None = _option("array", parse_array)  # noqa: RUF009 - it is a field
    nodes: int | None = _option("nodes", check_count, int)
    tasks_per_node: int | None = _option("ntasks-per-node", check_count)
    cpus_per_task: int | None = _option("cpus-per-task", check_count, int)
    gpus: Gpus | None = _option("gpus", parse_gpus, Gpus)  # noqa: RUF009 - it is a field
    mem: str | None = _option("mem", parse_memory, str)
    time: int | None = _option("time", check_time, str, variable="SBATCH_TIMELIMIT")
    partition: str | None = _option("partition", check_partition, str, variable="SBATCH_PARTITION")
    account: str | None = _option("account", check_account, str, variable="SBATCH_ACCOUNT")
    qos: str | None = _option("qos", check_qos, str, variable="SBATCH_QOS")


# By the name of the field, which is the key in [job] too.
OPTIONS: dict[str, Option] = {resource.name: resource.metadata["option"] for resource in fields(Resources)}
