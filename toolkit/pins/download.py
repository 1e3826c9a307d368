"""Small files from the index, kept by their hash."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING

from toolkit.support.certificates import certificate_problem, tls_context
from toolkit.support.errors import AnswerIsNo, ProgramFailed
from toolkit.support.files import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

_PATIENCE_SECONDS = 60
_LARGEST = 512 << 20


def fetch_file(url: str, sha256: str | None, folder: Path) -> bytes:
    """The file at `url`, which must hash to `sha256` (None: no hash is known, and it is not kept).

    Raises ProgramFailed where it cannot be fetched, AnswerIsNo where it is another file.
    """
    kept = folder / sha256 if sha256 else None
    if kept is not None and kept.is_file():
        earlier = kept.read_bytes()
        if hashlib.sha256(earlier).hexdigest() == sha256:
            return earlier
    name = url.rsplit("/", 1)[-1]
    try:
        with urllib.request.urlopen(  # noqa: S310 - uv gave the address
            url, timeout=_PATIENCE_SECONDS, context=tls_context()
        ) as answer:
            content: bytes = answer.read(_LARGEST)
    except (urllib.error.URLError, TimeoutError, HTTPException, ValueError) as error:
        meaning, fix = certificate_problem(str(error)) or (str(error), None)
        raise ProgramFailed(f"{name} cannot be fetched: {meaning}", fix=fix, code="index-unreachable") from error
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise AnswerIsNo(
            f"{name} is not the file that the index promised: its hash is another one",
            fix="A proxy may have answered in its place. Try again from another network.",
            code="wrong-hash",
        )
    if kept is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, content)
    return content
