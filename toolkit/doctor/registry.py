"""`ctk doctor --registry`: whether one registry answers, by which certificates, and which login it accepts."""

from __future__ import annotations

import re
import urllib.error
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING

from toolkit.pins.bases.check import finding_of
from toolkit.pins.bases.credentials import auth_files, find_login
from toolkit.pins.bases.registry import api_address, authorization, unreachable
from toolkit.pins.bases.transport import challenge_of, fetch
from toolkit.support.certificates import describe_trust
from toolkit.support.errors import ProgramFailed, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.http_client import WrongContent

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMEOUT = 10.0  # seconds
_HOST = re.compile(r"(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\])(?::\d{1,5})?")
_REFUSED = (401, 403)


@dataclass(frozen=True, slots=True)
class RegistryFacts:
    """The answer of a registry.

    `status` is the HTTP status with the login, if there is one; `problem` says why there is no status. `asks` is the
    authentication scheme that it requires, `login` names the file of the login that was sent. `trust` describes the
    certificate authorities; it is empty without TLS. `looked_in` are the files in which a login could be.
    """

    host: str
    status: int | None = None
    problem: ProgramFailed | None = None
    asks: str | None = None
    login: str | None = None
    trust: str = ""
    looked_in: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool | None:
        """Whether the login works; None if none was sent, or the registry did not say."""
        if self.login is None or self.status is None:
            return None
        return True if self.status < 400 else False if self.status in _REFUSED else None


def parse_registry(text: str) -> tuple[str, str]:
    """Host and repository ("" if there is none) of `HOST`, `HOST/REPOSITORY` or an image of it.

    Raises WrongInput if it does not name a host.
    """
    host, _, path = text.removeprefix("docker://").partition("/")
    if not _HOST.fullmatch(host):
        raise WrongInput(f"{text!r} is not the name of a registry", fix="Write for example nvcr.io, or docker.io.")
    return host, re.split(r"[:@]", path)[0].strip("/")


def ask_registry(host: str, repository: str = "") -> RegistryFacts:
    """Ask a registry, with the user's login for it if it requires one."""
    url = f"{api_address(host)}/v2/"
    trust = describe_trust() if url.startswith("https") else ""
    looked_in = tuple(map(str, auth_files()))
    try:
        status, challenge = _status(url, {})
        if status != 401:
            return RegistryFacts(host, status, trust=trust, looked_in=looked_in)
        login, asks = find_login(host, repository), challenge.partition(" ")[0]
        origin = login.origin if login is not None else None
        try:
            status, _ = _status(url, {"Authorization": authorization(challenge, url, login, _TIMEOUT)})
        except urllib.error.HTTPError as error:  # the service that gives the tokens refuses the login
            status = error.code
    except WrongContent as error:
        problem = ProgramFailed(f"the registry {host} {error}", code="registry-content")
        return RegistryFacts(host, problem=problem, trust=trust, looked_in=looked_in)
    except (OSError, HTTPException, ValueError) as error:
        return RegistryFacts(host, problem=unreachable(host, error), trust=trust, looked_in=looked_in)
    return RegistryFacts(host, status, None, asks, origin, trust, looked_in)


def _status(url: str, headers: dict[str, str]) -> tuple[int, str]:
    """The HTTP status, and the challenge of a 401."""
    try:
        fetch(url, headers, _TIMEOUT)
    except urllib.error.HTTPError as error:
        return error.code, challenge_of(error, url) if error.code == 401 else ""
    return 200, ""


def judge_registry(facts: RegistryFacts) -> Iterator[Finding]:
    """Whether it answers, then which login it accepts."""
    host, status = facts.host, facts.status
    if facts.problem is not None:
        yield finding_of(facts.problem, f"Registry: {facts.problem.message}.")
        return
    how = f"with TLS ({facts.trust})" if facts.trust else "without TLS"
    if status is None or (status >= 400 and status not in _REFUSED):
        message = f"Registry: {host} answers with HTTP status {status}, {how}."
        yield Finding("registry-unreachable", Severity.ERROR, message, "Check the name, or try again later.")
        return
    yield Finding("registry", Severity.OK, f"Registry: {host} answers, {how}.")
    yield _login(facts)


def _login(facts: RegistryFacts) -> Finding:
    host, fix = facts.host, f"`apptainer registry login --username NAME docker://{facts.host}`"
    if facts.login is not None and facts.accepted:
        return Finding("registry-login-accepted", Severity.OK, f"Login: {host} accepts that of {facts.login}.")
    if facts.login is not None:
        message = f"Login: {host} rejects that of {facts.login} (HTTP status {facts.status})."
        return Finding("registry-login", Severity.ERROR, message, f"{fix} replaces it.")
    if facts.asks is None:
        return Finding("no-registry-login", Severity.INFO, f"Login: {host} does not ask for one here.")
    message = f"Login: no file has one for {host} (looked in {', '.join(facts.looked_in)})"
    if facts.status in _REFUSED:
        return Finding("registry-login", Severity.ERROR, f"{message}, and it requires one.", f"{fix} stores one.")
    return Finding("no-registry-login", Severity.INFO, f"{message}; public images can be pulled.", f"{fix} stores one.")
