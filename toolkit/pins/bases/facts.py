"""What a lock is made for: the facts of a base, read from the image if it is here, else as `bases.toml` has them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from toolkit.recipes.architectures import host_architecture
from toolkit.recipes.model import Bootstrap
from toolkit.support.content import content_digest
from toolkit.support.errors import MissingOnHost, ProgramFailed, WrongInput

if TYPE_CHECKING:
    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.recipes.model import Base

_CONSTRAINT_FILES = ("/etc/pip/constraint.txt",)  # NVIDIA's images since 25.03
_LARGEST_CONSTRAINTS = 4 << 20


@dataclass(frozen=True, slots=True)
class BaseFacts:
    """A base and its Python. `digest` is the registry's or the content's; `trouble` says why it is not known."""

    base: Base
    target: PythonTarget
    digest: str | None
    trouble: str | None = None


def gather_facts(
    base: Base, cache: Path, *, architecture: str, image: Path | None = None, digest: str | None = None
) -> BaseFacts:
    """The facts of `base` for `architecture`. `image` is the path of the base, once the builder has pulled it.

    `digest` is one that an earlier lock knows; that of the base's own entry comes first, and without either the
    registry is asked. Raises WrongInput for a base without Python or for another architecture, MissingOnHost if neither
    the image is here nor `bases.toml` says which Python it has.
    """
    from toolkit.pins.bases.before_pull import require_architecture
    from toolkit.pins.bases.registry import fetch_digest
    from toolkit.pins.bases.target import recorded_target

    foreign = architecture != host_architecture()
    if image is None and base.bootstrap == Bootstrap.LOCALIMAGE:
        image = Path(base.reference)
    if image is None and (foreign or base.architectures):
        require_architecture(base, architecture)
    target = read_image(image, architecture) if image is not None else recorded_target(base, architecture)
    if target is None and image is not None:
        raise WrongInput(
            f"the base {base.name} has no Python",
            fix="Choose a base with Python, such as python-3.12 for packages that bring CUDA in their wheels. To keep "
            'this base, give it Python in an image of its own: a recipe on it with apt = ["python3", "python3-pip"] '
            'and no packages. Build that, and name the image in this recipe: base = "../IMAGE.sif".',
            code="no-python",
        )
    if target is None and foreign:
        raise MissingOnHost(
            f"the base {base.name} has to be read to choose packages for it, and an image for {architecture} cannot be "
            "pulled on this host",
            fix=f"Run `ctk lock` on a host with {architecture}, copy the image from there and name the file as base, "
            f"or choose another base: `ctk bases --arch {architecture}` lists them."
            f"{_wheels_instead(base, architecture)}",
            code="foreign-base",
        )
    if target is None:
        raise MissingOnHost(
            f"the base {base.name} is not in the work area, and its entry does not say what it contains",
            fix="`ctk lock` and `ctk build` pull the base first.",
            code="base-not-here",
        )
    if base.is_local:
        return BaseFacts(base, target, content_digest(base.path, cache))
    if base.bootstrap != Bootstrap.DOCKER:
        return BaseFacts(base, target, None)
    try:
        return BaseFacts(base, target, base.digest or digest or fetch_digest(base.reference))
    except ProgramFailed as error:
        return BaseFacts(base, target, None, error.message)


def _wheels_instead(base: Base, architecture: str) -> str:
    """How to lock the framework of `base` on any host: as wheels, if there are some with GPU code."""
    from toolkit.inventory.knowledge.frameworks import knowledge

    framework = knowledge().framework_of(canonicalize_name(base.framework or ""))
    arm = framework.on_arm if framework is not None and architecture == "aarch64" else None
    if framework is None or arm is None or not arm.packages:
        return ""
    return (
        f' On any host, wheels of {framework.title} with GPU code can be locked: base = "python-3.12" and packages = '
        f"{json.dumps(arm.packages)}."
    )


def read_image(image: Path, architecture: str | None = None) -> PythonTarget | None:
    """The Python of an image on this machine; None if it has none.

    Raises WrongInput if the image cannot be read, has musl for its C library, or is not for `architecture`.
    """
    from toolkit.inventory.contents.read import read_inventory
    from toolkit.inventory.formats.images import open_image
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.pins.bases.compiled import find_tools
    from toolkit.pins.bases.target import read_target

    known = knowledge()
    with open_image(image) as rootfs:
        inventory = read_inventory(rootfs)
        lines = _own_constraints(rootfs)
        programs = find_tools(rootfs)
        has_musl = any(name.startswith("ld-musl-") for name in rootfs.names("/lib"))
    if architecture is not None and inventory.architecture not in (None, architecture):
        raise WrongInput(
            f"{image} is for {inventory.architecture}, and the lock is for {architecture}",
            fix=f"`ctk lock --arch {inventory.architecture}` locks for it. `ctk build` needs a host with this "
            "architecture.",
            code="wrong-architecture",
        )
    if has_musl and inventory.glibc is None:
        raise WrongInput(
            f"{image} uses musl instead of glibc, like Alpine Linux: framework wheels and NVIDIA driver "
            "libraries do not run on it",
            fix="Start from an image with glibc, such as Debian or Ubuntu.",
            code="no-glibc",
        )
    target = read_target(inventory, lambda name: known.framework_of(name) is not None, lines)
    if target is None:
        return None
    return replace(target, programs=programs, architecture=architecture or target.architecture)


def _own_constraints(rootfs: Rootfs) -> tuple[str, ...]:
    found = []
    for path in _CONSTRAINT_FILES:
        for line in (rootfs.read_text(path, _LARGEST_CONSTRAINTS) or "").splitlines():
            text = line.partition("#")[0].strip()
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            if requirement.url is None and requirement.marker is None:
                found.append(text)
    return tuple(found)
