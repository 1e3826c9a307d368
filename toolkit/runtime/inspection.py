"""Image metadata: labels, environment, run script. spython queries the runtime and parses the output."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.runtime.options import image_argument
from toolkit.support.errors import WrongInput
from toolkit.support.files import make_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.runtime.engine import Runtime
    from toolkit.support.paths import WorkArea


@dataclass(frozen=True, slots=True)
class SelfDescription:
    """The labels, the definition, the environment script and the run script that an image carries."""

    labels: tuple[tuple[str, str], ...]
    definition: str
    environment: str
    runscript: str


def inspect(runtime: Runtime, image: Path, area: WorkArea) -> SelfDescription:
    """Read the metadata of `image` without running it. Raises WrongInput if the runtime cannot read it."""
    from spython.main import get_client

    with _singularity_on_path(runtime, area):
        client = get_client(quiet=True)
        # On failure spython returns the process's result, not the attributes, and raises nothing.
        answer: dict[str, Any] = client.inspect(image_argument(image), json=True, quiet=True)
    attributes = answer.get("attributes")
    if not isinstance(attributes, dict):
        reason = "".join(answer.get("message") or []).strip() or "no reason given"
        raise WrongInput(f"{runtime.product} cannot inspect {image}: {reason}")
    environment = attributes.get("environment") or {}
    return SelfDescription(
        labels=tuple(sorted((attributes.get("labels") or {}).items())),
        definition=attributes.get("deffile") or "",
        environment="\n".join(environment.values()) if isinstance(environment, dict) else str(environment),
        runscript=attributes.get("runscript") or "",
    )


@contextmanager
def _singularity_on_path(runtime: Runtime, area: WorkArea) -> Iterator[None]:
    """spython 0.3 runs only `singularity`: let it find a link of that name that leads to the runtime in use."""
    area.create()
    directory = area.path / "spython"
    make_directory(directory)
    link = directory / "singularity"
    if not link.is_symlink() or link.readlink() != runtime.program:
        link.unlink(missing_ok=True)
        link.symlink_to(runtime.program)
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = f"{directory}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before
