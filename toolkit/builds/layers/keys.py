"""The key of a step's layer: a hash of all that decides the layer's content, and of nothing else.

Keys form a chain: that of a step contains the key of the step before it, the first one the digest of the base. No time
and no path of this host is in a key, nor proxies, certificates and credentials. What a script fetches from the network,
or from directories that the user binds, is not known beforehand.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Increase it when ctk makes another layer from the same script, inputs and tools.
LAYER_FORMAT = 2


@dataclass(frozen=True, slots=True)
class MadeWith:
    """What all layers of a build are made with.

    `architecture` is what `uname -m` prints. `runtime` and `packer` are programs with their versions. `compression` is
    that of the layers. `variables` is the digest of the user's variables that reach the scripts (`variables_digest`).
    """

    architecture: str
    runtime: str
    packer: str
    compression: str
    variables: str = ""


@dataclass(frozen=True, slots=True)
class InputContent:
    """What is copied to the path `name` of the image, and the `sha256:…` of its names, modes and contents.

    `source` is its own name, which it gets if the path is a directory.
    """

    name: str
    source: str
    digest: str


def first_key(base: str, made_with: MadeWith) -> str:
    """The key before the first step. `base` is the digest of the base."""
    return _key("base", LAYER_FORMAT, base, astuple(made_with))


def step_key(
    before: str,
    script: str,
    inputs: Sequence[InputContent] = (),
    *,
    installer: str | None = None,
    network: bool = True,
) -> str:
    """The key of a step's layer, over what has the key `before`.

    `installer` is the program that installs Python packages, for the step that does. `network`: whether the script of
    a user could use one; what it makes without one may be less.
    """
    return _key("step", before, script, [astuple(copied) for copied in inputs], installer, network)


def _key(*parts: object) -> str:
    # JSON keeps the parts apart, and writes what is not UTF-8 in a text as escapes.
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
