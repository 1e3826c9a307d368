"""A job on a cluster: what the cluster's profile adds to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.jobs.offline import offline_variables
from toolkit.scheduler.completion import chosen_partition, complete_resources

if TYPE_CHECKING:
    from toolkit.jobs.model import Job
    from toolkit.scheduler.profiles import GpuType, Profile


def job_on(job: Job, profile: Profile) -> Job:
    """The job, made with the cluster's request templates, with its modules, binds, variables and implied resources.

    What the job says itself stays: a variable of its own, or a bind to the same directory of the container. Its modules
    are loaded after those of the cluster, on which they may depend.
    """
    given = {*(name for name, _ in job.environment), *job.inherited}
    variables = [*(profile.proxy.variables() if profile.proxy else ())]
    variables += offline_variables() if profile.internet is False else ()
    targets = {_target(bind) for bind in job.binds}
    return replace(
        job,
        **complete_resources(profile, job, job.requests),
        modules=tuple(dict.fromkeys((*profile.modules.names, *job.modules))),
        module_setup=profile.modules.setup,
        binds=(*job.binds, *(bind for bind in profile.binds if _target(bind) not in targets)),
        environment=(*job.environment, *((name, value) for name, value in variables if name not in given)),
    )


def gpu_types_of(job: Job, profile: Profile) -> tuple[GpuType, ...]:
    """The GPU types of the cluster that the job can get: the one that it names, those of its partition, or all."""
    if job.gpus is not None and job.gpus.kind is not None and (named := profile.gpu_type(job.gpus.kind)) is not None:
        return (named,)
    partition = chosen_partition(profile, job)
    names = partition.gpu_types if partition else ()
    return tuple(gpu for gpu in profile.gpu_types if gpu.type in names) or profile.gpu_types


def _target(bind: str) -> str:
    """The directory of the container that `SRC`, `SRC:DST` or `SRC:DST:ro` names."""
    source, _, rest = bind.partition(":")
    return (rest.partition(":")[0] or source).rstrip("/")
