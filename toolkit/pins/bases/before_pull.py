"""What is decided before the runtime pulls a base: whether this host can run it, and which login is lent.

Measured with Apptainer 1.4.5: it takes the image that a digest names, whatever its architecture, and fails only when
the image runs.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from toolkit.pins.bases.check import architectures_of
from toolkit.pins.bases.credentials import file_with_login, may_be_lent, read_by_runtime
from toolkit.pins.bases.registry import Repository, asking, parse_reference
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import CtkError, WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.recipes.model import Base


def require_architecture(base: Base) -> None:
    """Raise WrongInput (`wrong-architecture`) if a base of a registry has no image for this host.

    The catalogue tells the architectures, else the registry. If neither does, the pull goes on: the runtime may know
    another way to the registry.
    """
    machine = platform.machine()
    if base.bootstrap != Bootstrap.DOCKER or not machine:
        return
    known = base.architectures or _ask(base)
    if known and machine not in known:
        raise WrongInput(
            f"the base {base.pinned_reference} is for {', '.join(known)}, and this host is {machine}",
            fix=f"Build it on a host with this architecture, or choose a base for {machine} (`ctk bases`).",
            code="wrong-architecture",
        )


def _ask(base: Base) -> tuple[str, ...]:
    repository = Repository(parse_reference(base.reference))
    try:
        with asking(base.pinned_reference, repository):
            return architectures_of(repository, repository.manifest(base.digest or repository.reference.tag))
    except CtkError:
        return ()


def lent_login(base: Base) -> Path | None:
    """The file of the login that the registry of a base accepts and the runtime does not read by itself (podman's).

    None if there is no such file, or no need of a login. An expired one would make the pull of a public image fail.
    A file that others can write, or that names a credential helper for the registry, is not lent.
    """
    if base.bootstrap != Bootstrap.DOCKER:
        return None
    reference = parse_reference(base.reference)
    path = file_with_login(reference.host, reference.repository)
    if path is None or read_by_runtime(path) or not may_be_lent(path, reference.host, reference.repository):
        return None
    repository = Repository(reference)
    try:
        with asking(base.pinned_reference, repository):
            repository.named(base.digest or reference.tag)
    except CtkError:
        return None
    return path if repository.login is not None else None
