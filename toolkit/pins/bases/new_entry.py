"""A new entry of a base: from a reference, and what its registry says."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from toolkit.pins.bases.check import describe, images_of
from toolkit.pins.bases.registry import Repository, asking, parse_reference
from toolkit.recipes.model import ARCHITECTURES
from toolkit.recipes.references import base_from_reference
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from toolkit.recipes.model import Base

_SCHEME = "docker://"


def requested(text: str) -> Base:
    """The base that `ctk bases add TEXT` means. Raises WrongInput unless it is an image of a registry."""
    if "://" not in text and (text.startswith((".", "/", "~", "oci:", "docker-archive:")) or text.endswith(".sif")):
        raise WrongInput(
            f"{text} is not an image of a registry",
            fix="`ctk build RECIPE --base FILE` starts from a file of this machine.",
        )
    if "://" in text and not text.startswith(_SCHEME):
        raise WrongInput(f"{text}: ctk supports docker:// here, not this scheme")
    base = base_from_reference(text if text.startswith(_SCHEME) else f"{_SCHEME}{text}")
    if base.digest is not None and ":" not in base.reference.rpartition("/")[2]:
        raise WrongInput(
            f"{text} has a digest and no tag, so that `ctk bases check` could compare nothing",
            fix=f"Write the tag as well: {base.reference}:TAG@{base.digest}",
        )
    return base


def name_of(base: Base) -> str:
    """The default name of a base: `nvcr.io/nvidia/pytorch:25.03-py3` is `pytorch-25.03-py3`."""
    reference = parse_reference(base.reference)
    words = [reference.repository.rpartition("/")[2], *([reference.tag] if reference.tag != "latest" else [])]
    return re.sub(r"[^a-z0-9._-]+", "-", "-".join(words).lower()).strip("._-")


def from_registry(base: Base, name: str) -> tuple[Base, list[Finding]]:
    """The base with what its registry says, and a finding if its tag names another digest than the requested one.

    Raises what `asking` raises.
    """
    repository, findings = Repository(parse_reference(base.reference)), []
    with asking(base.pinned_reference, repository):
        tag = repository.named(repository.reference.tag)
        image = describe(repository, base.digest or tag.digest)
        if image.digest != tag.digest and not images_of(repository, tag, image.digest):
            message = f"the tag {base.reference} names {tag.digest}, not the requested digest"
            fix = f"`ctk bases check {name}` compares them again."
            findings.append(Finding("tag-moved", Severity.WARNING, message, fix))
    today = datetime.now(timezone.utc).date().isoformat()
    entry = replace(
        base,
        name=name,
        digest=image.digest,
        digest_of=image.digest_of,
        size=image.size or None,
        architectures=tuple(found for found in image.architectures if found in ARCHITECTURES),
        checked=today,
        source=f"the registry, asked on {today}",
    )
    return entry, findings
