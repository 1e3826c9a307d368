"""The cache and scratch directories of the runtime: its variables, for ctk's work area."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.support.paths import WorkArea

# The runtime unpacks in the directory of the first of these variables that is set.
SCRATCH_VARIABLES = ("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR", "TMPDIR")
_CACHE_VARIABLES = ("APPTAINER_CACHEDIR", "SINGULARITY_CACHEDIR")


def area_environment(area: WorkArea) -> dict[str, str]:
    """The variables that make apptainer and singularity work in `area`; one that the user set is left alone."""
    wanted = {
        **dict.fromkeys(_CACHE_VARIABLES, area.path / "cache"),
        **dict.fromkeys(SCRATCH_VARIABLES, area.path / "tmp"),
    }
    return {name: str(directory) for name, directory in wanted.items() if not os.environ.get(name)}


def scratch_variable() -> str | None:
    """The variable with which the user or the site sets the runtime's scratch directory."""
    return next(filter(os.environ.get, SCRATCH_VARIABLES), None)


def scratch_of(area: WorkArea) -> Path:
    """The runtime's scratch directory: from such a variable, else in `area`."""
    variable = scratch_variable()
    return Path(os.environ[variable]).absolute() if variable else area.path / "tmp"
