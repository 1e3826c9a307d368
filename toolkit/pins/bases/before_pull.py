"""What is decided before the runtime pulls or reads a base: its architecture, its size, and which login is lent.

Measured with Apptainer 1.4.5: it takes the image that a digest names, whatever its architecture, and fails only when
the image runs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from toolkit.pins.bases.credentials import file_with_login, may_be_lent, read_by_runtime
from toolkit.pins.bases.local import local_architectures
from toolkit.recipes.architectures import architecture_of, host_architecture
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import CtkError, WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.bases.check import Description
    from toolkit.recipes.model import Base, Recipe


def require_architecture(base: Base, wanted: str | None = None) -> None:
    """Raise WrongInput (`wrong-architecture`) if a base has no image for `wanted`, by default this host.

    The catalogue tells the architectures, else the image on this machine or the registry. If none does, the command
    goes on: the runtime may know another way to the registry.
    """
    host = host_architecture()
    machine = wanted or host
    known = base.architectures or _look_up(base)
    if base.bootstrap == Bootstrap.DEBOOTSTRAP or not machine or not known or machine in known:
        return
    if machine == host:
        whom = f"this host is {machine}"
        fix = f"Build it on a host with this architecture, or choose a base for {machine} (`ctk bases`)."
    else:
        whom, fix = (
            f"the lock is for {machine}",
            f"Choose a base for {machine}: `ctk bases --arch {machine}` lists them.",
        )
    message = f"the base {base.pinned_reference} is for {', '.join(known)}, and {whom}"
    raise WrongInput(message, fix=fix, code="wrong-architecture")


def require_host_architecture(recipe: Recipe) -> None:
    """Raise WrongInput (`wrong-architecture`) if `[target] arch` does not allow to run programs of the image here."""
    wanted, host = architecture_of(recipe), host_architecture()
    if wanted != host:
        raise WrongInput(
            f"{recipe.path}: [target] arch is {', '.join(recipe.target.architectures)}, and this host is {host}: "
            "programs of the image cannot run here",
            fix=f"Run this command on a host with {wanted}. `ctk lock`, `ctk def` and `ctk audit` work here.",
            code="wrong-architecture",
        )


def _look_up(base: Base) -> tuple[str, ...]:
    if base.is_local:
        return local_architectures(base)
    described = _describe(base) if base.bootstrap == Bootstrap.DOCKER else None
    return described.architectures if described is not None else ()


def download_size(base: Base) -> int | None:
    """The bytes that a pull of a registry's image downloads: the catalogue tells them, else the registry. None if
    neither does.
    """
    if base.size is not None or base.bootstrap != Bootstrap.DOCKER:
        return base.size
    described = _describe(base)
    return described.size if described is not None else None


def _describe(base: Base) -> Description | None:
    """What the registry says of a base; None if it does not."""
    from toolkit.pins.bases.registry import parse_reference

    if base.digest is None:
        return _ask(base.reference, parse_reference(base.reference).tag)
    return _asked_once(base.reference, base.digest)


@cache
def _asked_once(reference: str, digest: str) -> Description | None:
    """What a digest names never changes, and each request for a manifest may count as a pull."""
    return _ask(reference, digest)


def _ask(reference: str, name: str) -> Description | None:
    from toolkit.pins.bases.check import describe
    from toolkit.pins.bases.registry import Repository, asking, parse_reference

    repository = Repository(parse_reference(reference))
    try:
        with asking(reference, repository):
            return describe(repository, name)
    except CtkError:
        return None


def lent_login(base: Base) -> Path | None:
    """The file of the login that the registry of a base accepts and the runtime does not read by itself (podman's).

    None if there is no such file, or no need of a login. An expired one would make the pull of a public image fail.
    A file that others can write, or that names a credential helper for the registry, is not lent.
    """
    if base.bootstrap != Bootstrap.DOCKER:
        return None
    from toolkit.pins.bases.registry import Repository, asking, parse_reference

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
