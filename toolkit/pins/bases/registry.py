"""Ask a container registry: which image a tag names, for which platforms, and how large it is.

Source: OCI Distribution Specification 1.1 (manifests, Docker-Content-Digest) and Docker's token authentication.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from toolkit.pins.bases.credentials import HUB, find_login
from toolkit.pins.bases.manifests import (
    IMAGE_TYPES,
    INDEX_TYPES,
    Manifest,
    parse_config,
    parse_manifest,
    parse_object,
    sha256,
)
from toolkit.pins.bases.transport import TIMEOUT, TOTAL, challenge_of, fetch
from toolkit.support.certificates import certificate_problem, describe_trust
from toolkit.support.errors import CheckFailed, CtkError, ProgramFailed
from toolkit.support.http_client import WrongContent
from toolkit.support.redaction import server_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

    from toolkit.pins.bases.credentials import Login

_HUB_API = "registry-1.docker.io"
# An index is wanted if there is one: its digest is what `FROM image@sha256:…` means on every architecture.
_ACCEPT = ", ".join((*INDEX_TYPES, *IMAGE_TYPES))
_NO_HEAD = (405, 501)
_REDIRECTS = range(300, 400)
_NO_INTERNET = "Compute nodes often have no internet: run `ctk fetch` or `ctk build` on the login node."
_CLIENT = "ctk"


@dataclass(frozen=True, slots=True)
class Reference:
    """`host/repository:tag` in its parts."""

    host: str
    repository: str
    tag: str


def parse_reference(text: str) -> Reference:
    """The parts of an image's reference; without a host it means Docker Hub, without a tag `latest`."""
    rest, _, _ = text.partition("@")
    first, slash, remainder = rest.partition("/")
    named = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host, path = (first, remainder) if named else (HUB, rest)
    repository, _, tag = path.partition(":")
    if host == HUB and "/" not in repository:
        repository = f"library/{repository}"
    return Reference(host, repository, tag or "latest")


def fetch_digest(text: str) -> str:
    """The digest (`sha256:…`) of the manifest that a reference names now.

    Raises CheckFailed if the registry has no such image or requires credentials, ProgramFailed if it does not respond.
    """
    reference = parse_reference(text)
    repository = Repository(reference)
    with asking(text, repository):
        return repository.manifest(reference.tag).digest


@dataclass(frozen=True, slots=True)
class Named:
    """What a tag names: the digest of a manifest, and its media type."""

    digest: str
    media_type: str

    @property
    def is_index(self) -> bool:
        return self.media_type in INDEX_TYPES


@dataclass(slots=True)
class Repository:
    """Requests about one repository of a registry, with the user's login if the registry requires one.

    They raise OSError, HTTPException or WrongContent: `asking` turns these into errors for users. `login` is the one
    that was sent. All of them together have TOTAL seconds, however slowly the registry sends.
    """

    reference: Reference
    timeout: float = TIMEOUT
    login: Login | None = None
    _headers: dict[str, str] = field(default_factory=dict)
    _end: float = field(default_factory=lambda: time.monotonic() + TOTAL)

    def named(self, name: str) -> Named:
        """What a tag names, or a digest itself.

        HEAD transfers no manifest, and does not count as a pull (Docker Hub's documentation, "Usage and limits").
        """
        try:
            _, headers = self._request(f"manifests/{name}", method="HEAD")
        except urllib.error.HTTPError as error:
            if error.code not in _NO_HEAD:
                raise
        else:
            digest, kind = headers.get("Docker-Content-Digest", ""), headers.get_content_type()
            if digest.startswith("sha256:") and kind in (*INDEX_TYPES, *IMAGE_TYPES):
                return Named(digest, kind)
        manifest = self.manifest(name)
        return Named(manifest.digest, manifest.media_type)

    def manifest(self, name: str) -> Manifest:
        """The manifest that a tag or a digest names."""
        content, headers = self._request(f"manifests/{name}")
        stated = name if name.startswith("sha256:") else headers.get("Docker-Content-Digest", "")
        _check(content, stated)
        return parse_manifest(content, headers.get_content_type())

    def architecture(self, manifest: Manifest) -> str:
        """The architecture of an image, from its config."""
        content, _ = self._request(f"blobs/{manifest.config}")
        _check(content, manifest.config or "")
        return parse_config(content)

    def _request(self, path: str, *, method: str = "GET") -> tuple[bytes, Message]:
        host = self.reference.host
        url = f"{api_address(host)}/v2/{self.reference.repository}/{path}"
        headers = {"Accept": _ACCEPT} if path.startswith("manifests/") else {}
        try:
            return fetch(url, {**headers, **self._headers}, self.timeout, method=method, end=self._end)
        except urllib.error.HTTPError as error:
            if error.code != 401 or self._headers:
                raise
            challenge = challenge_of(error, url)
        self.login = find_login(host, self.reference.repository)
        self._headers = {"Authorization": authorization(challenge, url, self.login, self.timeout, self._end)}
        return fetch(url, {**headers, **self._headers}, self.timeout, method=method, end=self._end)


def _check(content: bytes, stated: str) -> None:
    if stated.startswith("sha256:") and (computed := sha256(content)) != stated:
        raise WrongContent(f"returned content with the digest {computed} instead of {stated}")


def authorization(
    challenge: str, url: str, login: Login | None, timeout: float = TIMEOUT, end: float | None = None
) -> str:
    """What to answer a 401 with: a token from the service that it names, or the user's own login.

    A login is sent only to a service with TLS, unless the registry itself has none.
    """
    scheme, _, rest = challenge.partition(" ")
    if scheme.lower() == "basic":
        return login.basic if login is not None else ""
    fields = dict(re.findall(r'\b(\w+)="([^"]*)"', rest))
    realm = fields.get("realm", "")
    if scheme.lower() != "bearer" or not realm.startswith(("https://", "http://")):
        raise WrongContent(f"requires an authentication that ctk does not support: {scheme[:40] or 'none'}")
    if urlsplit(realm).scheme == "http" and urlsplit(url).scheme == "https":
        raise WrongContent(f"sends logins to a service without TLS: {realm}")
    query = urlencode({key: fields[key] for key in ("service", "scope") if key in fields})
    if login is not None and login.is_token:
        form = (
            f"{query}&{urlencode({'grant_type': 'refresh_token', 'refresh_token': login.secret, 'client_id': _CLIENT})}"
        )
        content, _ = fetch(realm, {}, timeout, method="POST", body=form.encode(), end=end)
    else:
        headers = {"Authorization": login.basic} if login is not None else {}
        content, _ = fetch(f"{realm}{'&' if '?' in realm else '?'}{query}", headers, timeout, end=end)
    token = parse_object(content)
    return f"Bearer {token.get('token') or token.get('access_token') or ''}"


def api_address(host: str) -> str:
    """Where a registry is asked.

    One on this machine is usually without a certificate, as the runtimes know too; any other has one.
    """
    name = host.rpartition(":")[0] or host
    try:
        local = ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        local = name == "localhost"
    plain = local or os.environ.get("APPTAINER_NOHTTPS", "").lower() in ("1", "true", "yes")
    return f"{'http' if plain else 'https'}://{_HUB_API if host == HUB else host}"


@contextmanager
def asking(text: str, repository: Repository) -> Iterator[None]:
    """Turn the errors of requests for the image `text` into CheckFailed and ProgramFailed, each with its code."""
    host = repository.reference.host
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()  # it lives on as the cause of the next one
        raise _refused(text, host, error.code, repository.login) from error
    except WrongContent as error:
        raise ProgramFailed(
            f"the registry {host} {error}",
            fix=f"`ctk doctor --registry {host}` shows how ctk reaches it. A proxy or a captive portal of this network "
            "may have answered.",
            code="registry-content",
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        raise unreachable(host, error) from error


def unreachable(host: str, error: Exception) -> ProgramFailed:
    """The error of a registry without a response."""
    reason = getattr(error, "reason", error)
    fix = f"`ctk doctor --registry {host}` shows how ctk reaches it. {_NO_INTERNET}"
    if isinstance(reason, TimeoutError):
        return ProgramFailed(f"the registry {host} did not respond in time", fix=fix, code="registry-unreachable")
    if (problem := certificate_problem(str(reason))) is not None:
        meaning, fix = problem
        message = f"the registry {host} cannot be used: {meaning} ({describe_trust()})"
        return ProgramFailed(message, fix=fix, code="certificate")
    return ProgramFailed(
        f"the registry {host} does not respond{_through_proxy(host)}: {reason or type(error).__name__}",
        fix=fix,
        code="registry-unreachable",
    )


def _through_proxy(host: str) -> str:
    """What to say of the proxy by which a registry is asked, without its login; nothing if there is none."""
    proxy = urllib.request.getproxies().get(urlsplit(api_address(host)).scheme)
    if proxy is None or urllib.request.proxy_bypass(host):
        return ""
    return f" through the proxy {server_of(proxy)}"


def _refused(text: str, host: str, status: int, login: Login | None) -> CtkError:
    if status == 404:
        return CheckFailed(f"the registry has no image {text}", fix="Check the name and the tag.", code="no-such-image")
    if status in (401, 403):
        what = f"rejects the login of {login.origin}" if login is not None else "requires a login"
        return CheckFailed(
            f"the registry {what} for {text}",
            fix=f"`apptainer registry login docker://{host}`, then try again. "
            f"`ctk doctor --registry {host}` checks the login.",
            code="registry-login",
        )
    if status == 429:
        return ProgramFailed(
            f"the registry {host} limits the number of requests (HTTP status 429)",
            fix=f"Log in (`apptainer registry login docker://{host}`) for a higher limit, or try again later.",
            code="registry-unreachable",
        )
    message, fix = f"the registry returned status {status} for {text}", "Try again later."
    if status in _REDIRECTS:
        message = f"the registry {host} redirects without end for {text}"
        fix = f"A proxy or a captive portal of this network may do it. `ctk doctor --registry {host}` tries it again."
    return ProgramFailed(message, fix=fix, code="registry-unreachable")
