"""Documents about registries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.pins.bases.check import Checked


def checked_base(found: Checked) -> dict[str, Any]:
    """A row of `ctk bases check`."""
    image, tag = found.image, found.tag
    return {
        "name": found.base.name,
        "reference": found.base.reference,
        "state": found.state,
        "digest": found.base.digest,
        "tag_digest": tag.digest if tag else None,
        "media_type": tag.media_type if tag else None,
        "pullable": found.pullable,
        "image_digest": image.digest if image else None,
        "digest_of": image.digest_of if image else None,
        "architectures": list(image.architectures) if image else [],
        "size_bytes": image.size if image else None,
        "login": found.login,
    }
