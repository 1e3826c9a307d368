"""The digest that a tag of a registry names: asked for with patience, and remembered for builds without a network."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError

from toolkit.builds.pulling import WAITS, pause, seconds_of
from toolkit.support.errors import CtkError, ProgramFailed
from toolkit.support.files import make_directory, open_regular, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_LARGEST_NOTE = 8 << 10  # bytes
_LIMIT, _NOT_IMPLEMENTED = 429, 501


def ask_digest(reference: str, cache: Path, note: Callable[[str], None] | None) -> str:
    """The digest (`sha256:…`) that a tag names now, and that `remembered_digest` finds in `cache` from now on.

    A busy registry and a lost connection are tried again, and `note` is told; without it, there is one attempt. Raises
    as `fetch_digest` does.
    """
    from toolkit.pins.bases.registry import fetch_digest

    waits = iter(WAITS)
    while True:
        try:
            digest = fetch_digest(reference)
        except ProgramFailed as error:
            cause = error.__cause__
            wait = next(waits, None)
            if wait is None or note is None or not _is_passing(cause):
                raise
            asked = seconds_of(cause.headers.get("Retry-After", "")) if isinstance(cause, HTTPError) else None
            pause(error, f"asking for the digest of {reference}", error.message, wait, asked, note)
        else:
            _remember(reference, digest, cache)
            return digest


def remembered_digest(reference: str, cache: Path) -> str | None:
    """The digest that a tag named when the registry was last asked for it here; None if it is not known."""
    try:
        with open_regular(_place(reference, cache)) as file:
            said = json.loads(file.read(_LARGEST_NOTE))
        if said["reference"] == reference and _DIGEST.fullmatch(said["digest"]):
            return str(said["digest"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def _remember(reference: str, digest: str, cache: Path) -> None:
    """It is no error where that cannot be written."""
    place = _place(reference, cache)
    with contextlib.suppress(OSError, CtkError):
        make_directory(place.parent)
        write_atomically(place, json.dumps({"reference": reference, "digest": digest}), mode=0o600, durable=False)


def _place(reference: str, cache: Path) -> Path:
    return cache / "tags" / f"{hashlib.sha256(reference.encode(errors='surrogateescape')).hexdigest()}.json"


def _is_passing(cause: BaseException | None) -> bool:
    """Whether another attempt is worth it, as `toolkit.runtime.transient` decides for the runtime."""
    if isinstance(cause, HTTPError):
        return cause.code == _LIMIT or (cause.code >= 500 and cause.code != _NOT_IMPLEMENTED)
    reason = cause.reason if isinstance(cause, URLError) else cause
    return isinstance(reason, ConnectionResetError | BrokenPipeError | HTTPException)
