"""Where a build puts files of its own in an image, for as long as a step runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Both are removed from the image at the end of the step. The runtime writes its script of `%post` there, and copies
# `%files` there, whatever is in the way: symlinks of a base are followed to files of the host (Apptainer 1.4.5).
SCRIPT, STAGING = "/.post.script", "/.ctk-files"


def reserved_paths(inputs: Iterable[str]) -> tuple[str, ...]:
    """Where a build puts files of its own, which a base must not have; `inputs` are the paths of its inputs."""
    return (SCRIPT, STAGING) if any(path.startswith(f"{STAGING}/") for path in inputs) else (SCRIPT,)
