"""What the user's own environment changes in a container that is not isolated, as a job's or a plain `exec` is.

The check itself runs without it: `--cleanenv` and PYTHONNOUSERSITE=1.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


# Variables that decide which Python packages and libraries a program in the container loads, and which GPUs it sees.
# The host's LD_LIBRARY_PATH does not reach it by itself, LD_PRELOAD does. Seen with Apptainer 1.4.5 on 2026-11-22.
_PASSED = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "LD_PRELOAD")
_DECISIVE = (*_PASSED, "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


@dataclass(frozen=True, slots=True)
class UserEnvironment:
    """The variables that reach the container and decide something, and what ~/.local has of the image's frameworks.

    `variables` are (name, value) as the container gets them, with the name of the variable that sets it on the host;
    `shadows` are (directory, modules).
    """

    variables: tuple[tuple[str, str, str], ...] = ()
    shadows: tuple[tuple[str, tuple[str, ...]], ...] = ()


def user_environment(
    environ: Mapping[str, str], home: Path, modules: Iterable[str], also: Iterable[str] = ()
) -> UserEnvironment:
    """Look at the variables and at ~/.local of this user. `also` are variables by which frameworks choose a device."""
    wanted = list(modules)
    directories = sorted(home.glob(".local/lib/python3.*/site-packages"))
    found = [(str(path), tuple(name for name in wanted if _has_module(path, name))) for path in directories]
    shadows = tuple((path, names) for path, names in found if names)
    return UserEnvironment(tuple(_variables(environ, (*_PASSED, *also), (*_DECISIVE, *also))), shadows)


def _variables(
    environ: Mapping[str, str], passed: Iterable[str], decisive: Iterable[str]
) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys(decisive):
        prefixed = (f"{runtime}ENV_{name}" for runtime in ("APPTAINER", "SINGULARITY"))
        origin = next((variable for variable in prefixed if variable in environ), None)
        if origin is None and name in passed and environ.get(name):
            origin = name
        if origin is not None:
            yield name, environ[origin], origin


def _has_module(directory: Path, name: str) -> bool:
    place = directory / name
    return place.with_suffix(".py").is_file() or os.path.isdir(place)  # noqa: PTH112


def judge_environment(environment: UserEnvironment) -> Iterator[Finding]:
    """Each of them as a warning: the check did not see it, and a program would."""
    for directory, modules in environment.shadows:
        yield Finding(
            "user-site-shadows",
            Severity.WARNING,
            f"{directory} has {', '.join(modules)}: a plain `apptainer exec` imports that instead of the image's.",
            "`ctk run` and the job scripts of `ctk sbatch` ignore ~/.local. Elsewhere: export PYTHONNOUSERSITE=1, or "
            "remove the packages there.",
        )
    for name, value, origin in environment.variables:
        where = origin if origin == name else f"{origin} (in the container: {name})"
        yield Finding(
            "user-variable",
            Severity.WARNING,
            f"{where} is set to {value!r}: {_effect(name)}. This check ran without it.",
            f"Unset {origin} in the job, unless the program needs it.",
        )


def _effect(name: str) -> str:
    if re.match("PYTHON", name):
        return "Python in the container takes modules from there, which may not be the image's"
    if name.startswith("LD_"):
        return "programs in the container load libraries from there, and the driver's may not be found"
    return "programs in the container compute on what it names"
