"""`--cluster`, for every command that has it: the profile that is meant, and the machines it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.completion import complete_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.facts import TargetMachine
    from toolkit.recipes.model import Recipe, Target
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


def cluster_target(profile: Profile) -> Target:
    """The machines of a cluster as a recipe's `[target]` names them: each GPU type with its own driver.

    Where no GPU type is known, the oldest driver counts, as it does for a type whose driver the profile does not say.
    """
    from toolkit.gpu.compatibility import parse_driver
    from toolkit.recipes.model import Target

    known = dict.fromkeys((name, gpu.driver) for gpu in profile.gpu_types if (name := _known_name(gpu)) is not None)
    drivers = sorted({gpu.driver for gpu in profile.gpu_types if gpu.driver}, key=parse_driver)
    return Target(
        tuple(name for name, _ in known),
        drivers[0] if drivers else None,
        origin=f"cluster {profile.name}",
        drivers=tuple(driver for _, driver in known),
    )


def impossible_machines(profile: Profile) -> tuple[Finding, ...]:
    """A warning for each GPU type whose driver in the profile does not know it."""
    from toolkit.gpu.compatibility import find_gpu
    from toolkit.gpu.fit import impossible_driver
    from toolkit.support.findings import Finding, Severity

    found = []
    for gpu in profile.gpu_types:
        name = _known_name(gpu)
        reason = impossible_driver(find_gpu(name).capability, gpu.driver) if name else None
        if reason is not None:
            message = f"the profile of cluster {profile.name}: {gpu.type} ({name}): {reason}"
            fix = f"Correct `model`, `capability` or `driver` of the GPU type in {profile.path}."
            found.append(Finding("driver-without-gpu", Severity.WARNING, message, fix))
    return tuple(found)


def cluster_machines(profile: Profile, gpu_types: Iterable[GpuType] | None = None) -> tuple[TargetMachine, ...]:
    """The machines to audit an image for: one for each GPU type, with its own driver.

    `gpu_types` are those that matter, all of the profile by default. What the profile does not say is printed.
    """
    from toolkit.gpu.targets import machines
    from toolkit.recipes.model import Target

    types = profile.gpu_types if gpu_types is None else tuple(gpu_types)
    say_missing_facts(profile)
    found = [
        machine for gpu in types for machine in machines(Target(tuple(filter(None, [_known_name(gpu)])), gpu.driver))
    ]
    return tuple(dict.fromkeys(found)) or machines(Target())


def missing_facts(profile: Profile) -> tuple[Finding, ...]:
    """A note on what the profile does not say of its GPUs, and is therefore not judged."""
    from toolkit.support.findings import Finding, Severity

    types = profile.gpu_types
    unknown = [gpu.type for gpu in types if _known_name(gpu) is None]
    missing = [f"what {', '.join(unknown)} is"] if unknown else [] if types else ["which GPUs it has"]
    missing += [] if any(gpu.driver for gpu in types) else ["which NVIDIA driver"]
    if not missing:
        return ()
    message = f"the profile of cluster {profile.name} does not say {' and '.join(missing)}: that is not judged"
    fix = f"Add it to {profile.path}: `capability` and `driver` of [[gpu]]."
    return (Finding("cluster-facts-missing", Severity.INFO, message, fix),)


def say_missing_facts(profile: Profile) -> None:
    """Print, on standard error, what the profile does not say of its GPUs, and what cannot be true of them."""
    from toolkit.cli.output import print_findings

    print_findings((*impossible_machines(profile), *missing_facts(profile)), stderr=True)


def named_target(cluster: str | None) -> Target | None:
    """The GPUs and the driver of the cluster that `--cluster` names; None without one."""
    if cluster is None:
        return None
    profile = profile_of(cluster)
    say_missing_facts(profile)
    return cluster_target(profile)


def for_machine(recipe: Recipe, target: Target | None) -> Recipe:
    """The recipe, to be judged for the GPUs and the driver of `target` instead of its own; as it is for None.

    A lock is for the recipe as it is: its target is part of what a lock is made for.
    """
    if target is None:
        return recipe
    return replace(recipe, target=replace(target, architectures=recipe.target.architectures))


def machine_options(cluster: str | None, gpus: list[str] | None, driver: str | None) -> Target:
    """The machines that `--gpu` and `--driver` name, or those of the cluster. Raises WrongInput for both."""
    from toolkit.gpu.compatibility import listed_gpus
    from toolkit.recipes.model import Target

    refuse_both(cluster, gpu=gpus, driver=driver)
    return named_target(cluster) or Target(listed_gpus(gpus or ()), driver)


def _known_name(gpu: GpuType) -> str | None:
    """How ctk calls this GPU: its model where ctk knows it, which is how users call it, else its capability or type.

    None if the profile does not say what it is.
    """
    from toolkit.gpu.compatibility import find_gpu
    from toolkit.support.errors import WrongInput

    for name in (gpu.model, gpu.capability, gpu.type):
        try:
            found = find_gpu(name) if name else None
            if found and gpu.capability in (None, ".".join(map(str, found.capability or ()))):
                return name
        except WrongInput:
            continue
    return None


def refuse_both(cluster: str | None, **options: object) -> None:
    """Raise WrongInput if --cluster stands beside an option that it answers, such as --gpu."""
    from toolkit.support.errors import WrongInput

    given = next((name for name, value in options.items() if value), None)
    if cluster is not None and given is not None:
        raise WrongInput(f"--cluster already determines --{given}", fix=f"Use --cluster or --{given}.")
