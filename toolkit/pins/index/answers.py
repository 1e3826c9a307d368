"""Errors of a server that sends no file: the address, its answer, and the fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from toolkit.support.http_client import TooLarge

CREDENTIALS_FIX = (
    "Set UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD, NAME as `name` of its [[index]] in capitals with `_` for "
    "`-`; or write both to ~/.netrc."
)
# Recorded from uv 0.13: of a page or a file, and of an index.
_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d{3}) ([\w -]+)\) for url \(([^\s)]+)\)")
_INDEX_STATUS = re.compile(
    r"An index URL \((?P<wants>\S+)\) could not be queried .*\((?P<login>40[13]) "
    r"|An index \((?P<url>\S+)\) returned a (?P<status>\d{3}) "
)
_REDIRECTS = range(300, 400)
_REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}

# Recorded from git 2.39.
_GIT_LOGIN = re.compile(r"could not read (?:Username|Password) for|Authentication failed for|requested URL.*error: 401")
_GIT_STATUS = re.compile(r"requested URL returned error: (\d{3})")
_GIT_MISSING = re.compile(r"fatal: (?:remote error: )?[Rr]epository .*not found")


def status_in(output: str) -> tuple[str, int] | None:
    """The address and the status of the HTTP answer that ended uv; None if none did."""
    if found := _STATUS.search(output):
        return found[3], int(found[1])
    if found := _INDEX_STATUS.search(output):
        return found["wants"] or found["url"], int(found["login"] or found["status"])
    return None


def refused(address: str, status: int) -> ProgramFailed:
    """The error for an address that answered with a status of 400 or above."""
    said = f"{status} {_REASONS[status]}" if status in _REASONS else str(status)
    if status in (401, 403):
        return ProgramFailed(f"{address} refuses access ({said})", fix=CREDENTIALS_FIX, code="index-credentials")
    if status == 404:
        return ProgramFailed(
            f"nothing found at {address} ({said})",
            fix="Correct the address: `url` of an [[index]], or `packages` of the recipe.",
            code="index-not-found",
        )
    if status in _REDIRECTS:
        said += ", which leads nowhere"
    return ProgramFailed(
        f"{address} returned status {said}",
        fix="The server failed: try again later, or ask its administrator.",
        code="index-unreachable",
    )


def too_large(what: str, error: TooLarge) -> ProgramFailed:
    """The error for an address, or a file of a server, of which more comes than there may be."""
    return ProgramFailed(
        f"{what} {error}",
        fix="A proxy or a login page of this network may have answered, or the index is broken: try another network or "
        "index.",
        code="answer-too-large",
    )


def git_refusal(output: str) -> tuple[str, str] | None:
    """The error and the fix for a repository that the server refuses; None for any other failure."""
    public = (
        "A build can fetch only public repositories. Of a private repository, build a wheel and put it on an index "
        "with a password ([[index]]), or copy it into the image with [[files]] and install it in `post`."
    )
    if _GIT_LOGIN.search(output):
        return "the server requires a login: the repository is private, or does not exist", public
    status = _GIT_STATUS.search(output)
    if status and status[1] == "403":
        return "the server answered 403 Forbidden", public
    if _GIT_MISSING.search(output) or (status and status[1] == "404"):
        return (
            "the server has no such repository, or does not show it without a login",
            f"Correct the address; `git ls-remote` tries it. {public}",
        )
    return (f"the server answered {status[1]}", "The server failed: try again later.") if status else None
