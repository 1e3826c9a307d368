"""`--cluster`, for every command that has it: the profile that is meant, and the machines it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.completion import complete_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.recipes.model import Target
    from toolkit.scheduler.profiles import GpuType, Profile
    from toolkit.support.findings import Finding

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="NAME|FILE",
        help="Cluster profile (`ctk cluster list`) whose GPUs and driver count.",
        autocompletion=complete_cluster,
    ),
]


def profile_of(named: str) -> Profile:
    """The profile that `--cluster` names. Raises WrongInput if there is none, or it is invalid."""
    from toolkit.scheduler.profile_places import Profiles

    return Profiles.here().profile(named)


def cluster_target(profile: Profile, gpu_types: Iterable[GpuType] | None = None) -> tuple[Target, tuple[Finding, ...]]:
    """The machines of a cluster as a recipe's `[target]` names them, and a note on what the profile does not say.

    `gpu_types` are those that matter, all of the profile by default. Of several drivers, the oldest counts.
    """
    from toolkit.gpu.compatibility import parse_driver, parse_gpu
    from toolkit.recipes.model import Target
    from toolkit.support.errors import WrongInput
    from toolkit.support.findings import Finding, Severity

    types = profile.gpu_types if gpu_types is None else tuple(gpu_types)
    known, unknown = [], []
    for gpu in types:
        try:
            parse_gpu(gpu.target)
        except WrongInput:
            unknown.append(gpu.type)
        else:
            known.append(gpu)
    drivers = sorted({gpu.driver for gpu in types if gpu.driver}, key=parse_driver)
    target = Target(tuple(dict.fromkeys(_label(gpu) for gpu in known)), drivers[0] if drivers else None)
    missing = [f"what kind of GPU {', '.join(unknown)} is"] if unknown else [] if types else ["its GPUs"]
    missing += [] if drivers else ["its NVIDIA driver"]
    note = Finding(
        "cluster-facts-missing",
        Severity.INFO,
        f"the profile of cluster {profile.name} does not say {' and '.join(missing)}: that is not judged",
        f"Add it to {profile.path}: `capability` and `driver` of [[gpu]].",
    )
    return target, (note,) if missing else ()


def _label(gpu: GpuType) -> str:
    """The model where ctk knows it, which is how users call it, else the compute capability."""
    from toolkit.gpu.compatibility import parse_gpu
    from toolkit.support.errors import WrongInput

    try:
        if gpu.model is not None and gpu.capability in (None, ".".join(map(str, parse_gpu(gpu.model)))):
            return gpu.model
    except WrongInput:
        pass
    return gpu.target


def refuse_both(cluster: str | None, **options: object) -> None:
    """Raise WrongInput if --cluster stands beside an option that it answers, such as --gpu."""
    from toolkit.support.errors import WrongInput

    given = next((name for name, value in options.items() if value), None)
    if cluster is not None and given is not None:
        raise WrongInput(f"--cluster already determines --{given}", fix=f"Use --cluster or --{given}.")
