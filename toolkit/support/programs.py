"""Programs of the host that may lie where the user's PATH does not lead."""

from __future__ import annotations

import os
import shutil

# Debian gives an ordinary user no sbin; Apptainer's packages bring programs of their own.
_MORE_PLACES = (
    *("/usr/sbin", "/sbin", "/usr/local/sbin"),
    *("/usr/libexec/apptainer/bin", "/usr/lib/apptainer/bin", "/usr/libexec/singularity/bin"),
)


def find_program(*names: str) -> str | None:
    """The path of the first of these programs that is on PATH or in another usual place; None if there is none."""
    more = os.pathsep.join(_MORE_PLACES)
    return next((found for name in names if (found := shutil.which(name) or shutil.which(name, path=more))), None)
