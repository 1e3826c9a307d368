"""The labels that a base brings into an image: the runtime lets them win over those of the definition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.recipes.model import Base

_LABELS = "/.singularity.d/labels.json"
_LARGEST = 1 << 20  # bytes


def has_labels_of_ctk(base: Base) -> bool:
    """Whether `base` is an image on this machine with labels `ctk.*`: one that ctk, or a definition of ctk, built."""
    if base.bootstrap != Bootstrap.LOCALIMAGE:
        return False
    from toolkit.inventory.formats.images import open_image

    try:
        with open_image(Path(base.reference)) as rootfs:
            labels = json.loads(rootfs.read_text(_LABELS, _LARGEST) or "{}")
    except (WrongInput, ValueError, RecursionError):
        return False  # the runtime says what is wrong with it
    return isinstance(labels, dict) and any(name.startswith("ctk.") for name in labels)
