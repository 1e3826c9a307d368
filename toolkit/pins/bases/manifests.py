"""What a registry's manifest says: one image, or an index of images for several platforms.

Sources: OCI Image Specification 1.1 (manifest, index, config); Docker's Image Manifest Version 2, Schema 2.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from toolkit.recipes.model import LARGEST_IMAGE
from toolkit.support.http_client import WrongContent

INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
IMAGE_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
# As Go names a processor in an index (GOARCH), and `uname -m` on it.
_PROCESSORS = {
    "amd64": "x86_64",
    "arm64": "aarch64",
    "386": "i686",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
}


@dataclass(frozen=True, slots=True)
class Platform:
    """An image of an index: its digest, and what `uname -m` says on the machines that it is for."""

    digest: str
    architecture: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest of one image, or an index (`is_index`).

    An index has `platforms`; an image has `size`, the compressed bytes of its layers, and `config`, the digest of the
    document that names its platform.
    """

    digest: str
    media_type: str
    platforms: tuple[Platform, ...] = ()
    size: int | None = None
    config: str | None = None

    @property
    def is_index(self) -> bool:
        return self.media_type in INDEX_TYPES


def sha256(content: bytes) -> str:
    """The digest of some content, as registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def parse_manifest(content: bytes, media_type: str = "") -> Manifest:
    """A manifest or an index. Its own media type counts; `media_type` is the server's. Raises WrongContent."""
    document = parse_object(content)
    kind = document.get("mediaType") or media_type.partition(";")[0].strip()
    try:
        if kind in INDEX_TYPES:
            found = (_platform(entry) for entry in document["manifests"])
            return Manifest(sha256(content), kind, tuple(platform for platform in found if platform is not None))
        if kind in IMAGE_TYPES:
            layers = [layer["size"] for layer in document["layers"]]
            return Manifest(
                sha256(content), kind, size=_bytes(sum(map(_bytes, layers))), config=str(document["config"]["digest"])
            )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WrongContent(f"returned an incomplete manifest: {error!r}") from error
    raise WrongContent(f"returned {kind or 'something'!r}, which is not the manifest of an image")


def parse_config(content: bytes) -> str:
    """What `uname -m` says on the machines that an image is for, from its config. Raises WrongContent."""
    architecture = parse_object(content).get("architecture")
    if not isinstance(architecture, str) or not architecture:
        raise WrongContent("returned an image config without an architecture")
    return _PROCESSORS.get(architecture, architecture)


def parse_object(content: bytes) -> dict[str, Any]:
    """A JSON object. Raises WrongContent."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        begin = content[:40].decode(errors="replace")
        raise WrongContent(f"returned something that is not JSON ({begin!r}…), as a captive portal or a proxy does")
    return document


def _platform(entry: dict[str, Any]) -> Platform | None:
    """An entry of an index; None for what is no Linux image: signatures and build records have the OS `unknown`."""
    platform = entry.get("platform") or {}
    if platform.get("os") != "linux":
        return None
    return Platform(str(entry["digest"]), _PROCESSORS.get(platform["architecture"], str(platform["architecture"])))


def _bytes(size: Any) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= LARGEST_IMAGE:
        raise ValueError(f"the size {repr(size)[:40]}")
    return size
