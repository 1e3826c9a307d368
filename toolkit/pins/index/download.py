"""Small files from the index, kept by their hash."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from base64 import b64encode
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from toolkit.pins.index.answers import refused, too_large
from toolkit.pins.index.uv import index_address
from toolkit.recipes.indexes import credentials, name_of
from toolkit.recipes.model import Index
from toolkit.support.certificates import certificate_problem
from toolkit.support.errors import CheckFailed, ProgramFailed
from toolkit.support.files import make_directory, write_atomically
from toolkit.support.http_client import Limits, TooLarge, read_url
from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from urllib.parse import SplitResult

_LARGEST = 512 << 20  # a source distribution is read into memory


def fetch_file(url: str, sha256: str | None, directory: Path, indexes: Iterable[Index] = ()) -> bytes:
    """The file at `url`, which must hash to `sha256` (None: no hash is known, and it is not kept).

    A server that is asked for the `indexes` gets their credentials. Raises ProgramFailed if it cannot be fetched,
    CheckFailed if the hash differs.
    """
    kept = directory / sha256 if sha256 else None
    if kept is not None and kept.is_file():
        earlier = kept.read_bytes()
        if hashlib.sha256(earlier).hexdigest() == sha256:
            return earlier
    name = url.rsplit("/", 1)[-1]
    try:
        content, _ = read_url(request_file(url, indexes), Limits(_LARGEST))
    except urllib.error.HTTPError as error:
        raise refused(redact(url), error.code) from error
    except TooLarge as error:
        raise too_large(redact(url), error) from error
    except (OSError, HTTPException, ValueError) as error:
        meaning, fix = certificate_problem(str(error)) or (str(error), None)
        raise ProgramFailed(f"{name} cannot be fetched: {meaning}", fix=fix, code="index-unreachable") from error
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise CheckFailed(
            f"{name} does not have the hash that the index lists",
            fix="A proxy may have replaced it. Try again from another network.",
            code="wrong-hash",
        )
    if kept is not None:
        make_directory(directory)
        write_atomically(kept, content, durable=False)
    return content


def request_file(url: str, indexes: Iterable[Index] = ()) -> urllib.request.Request:
    """A request for `url` with the credentials for its server, if there are any."""
    request = urllib.request.Request(url)  # noqa: S310 - uv or an index gave the address
    if login := find_login(url, indexes):
        # Not for the server that this one may redirect to.
        request.add_unredirected_header("Authorization", f"Basic {b64encode(':'.join(login).encode()).decode()}")
    return request


def find_login(url: str, indexes: Iterable[Index] = ()) -> tuple[str, str] | None:
    """The user and password for a file at `url`: those of the index on its server, else of ~/.netrc."""
    place = urlsplit(url)
    # uv reads ~/.netrc for any server, so that it chose a file of one that needs it.
    for index in (*indexes, Index(name_of(url), url)):
        found = sorted(credentials((index,)).items())  # …_PASSWORD, …_USERNAME
        if len(found) == 2 and _server(urlsplit(index.url)) == _server(place):
            return found[1][1], found[0][1]
    default = urlsplit(index_address())
    if default.username and _server(default) == _server(place):
        return unquote(default.username), unquote(default.password or "")
    return None


def _server(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port
