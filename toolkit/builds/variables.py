"""The user's own variables of the runtime that reach the scripts of a build: APPTAINERENV_* and SINGULARITYENV_*."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

from toolkit.builds.lending import FILE_VARIABLES, PROXIES
from toolkit.recipes.indexes import credentials_variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.recipes.model import Index

_FAMILIES = ("APPTAINERENV_", "SINGULARITYENV_")
# The digest is recorded in images that others can read: a short password must not be found by trying all of them.
_ROUNDS = 200_000


def variables_digest(indexes: Iterable[Index] = (), environment: Mapping[str, str] = os.environ) -> str:
    """A digest of the names and values of these variables; "" if there are none.

    Without proxies, certificates and the credentials of `indexes`, which decide nothing of the image's content.
    """
    lent = {*PROXIES, *FILE_VARIABLES}
    lent |= {f"{credentials_variable(index.name)}_{part}" for index in indexes for part in ("USERNAME", "PASSWORD")}
    found = sorted((name, value) for name, value in environment.items() if _reaches_scripts(name, lent))
    if not found:
        return ""
    text = json.dumps(found).encode()
    return f"pbkdf2:{hashlib.pbkdf2_hmac('sha256', text, b'ctk variables', _ROUNDS).hex()}"


def _reaches_scripts(name: str, lent: set[str]) -> bool:
    return any(name.startswith(family) and name.removeprefix(family) not in lent for family in _FAMILIES)
