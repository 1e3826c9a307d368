"""Which image a tag names now, according to its registry.

Source: OCI Distribution Specification 1.1 (manifests, Docker-Content-Digest) and Docker's token authentication.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from toolkit.support.certificates import certificate_problem, tls_context
from toolkit.support.errors import CheckFailed, ProgramFailed
from toolkit.support.paths import home

if TYPE_CHECKING:
    from collections.abc import Mapping

_HUB, _HUB_API = "docker.io", "registry-1.docker.io"
_TIMEOUT_SECONDS = 20
_LARGEST = 8 << 20
# An index is wanted if there is one: its digest is what `FROM image@sha256:…` means on every architecture.
_ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_CREDENTIALS = (".apptainer/docker-config.json", ".singularity/docker-config.json", ".docker/config.json")


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
    host, path = (first, remainder) if named else (_HUB, rest)
    repository, _, tag = path.partition(":")
    if host == _HUB and "/" not in repository:
        repository = f"library/{repository}"
    return Reference(host, repository, tag or "latest")


def fetch_digest(text: str) -> str:
    """The digest (`sha256:…`) of the manifest that a reference names now.

    Raises CheckFailed if the registry has no such image or requires credentials, ProgramFailed if it does not respond.
    """
    reference = parse_reference(text)
    url = f"{api_address(reference.host)}/v2/{reference.repository}/manifests/{reference.tag}"
    headers = {"Accept": _ACCEPT}
    try:
        try:
            return _manifest_digest(url, headers)
        except urllib.error.HTTPError as error:
            if error.code != 401:
                raise
            challenge = error.headers.get("WWW-Authenticate", "")
        return _manifest_digest(url, {**headers, "Authorization": _authorization(challenge, reference.host)})
    except urllib.error.HTTPError as error:
        raise _refused(text, error.code) from error
    except (urllib.error.URLError, TimeoutError, HTTPException, ConnectionError, ValueError) as error:
        reason = str(getattr(error, "reason", error))
        if (problem := certificate_problem(reason)) is not None:
            meaning, fix = problem
            message = f"the registry {reference.host} cannot be used: {meaning}"
            raise ProgramFailed(message, fix=fix, code="certificate") from error
        raise ProgramFailed(
            f"the registry {reference.host} does not respond: {reason}", code="registry-unreachable"
        ) from error


def _manifest_digest(url: str, headers: Mapping[str, str]) -> str:
    with _open(url, headers) as answer:
        content = answer.read(_LARGEST)
        said = answer.headers.get("Docker-Content-Digest", "")
    computed = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if said and said.startswith("sha256:") and said != computed:
        raise ValueError(f"the digest of the manifest should be {said}, but is {computed}")
    return computed


def _authorization(challenge: str, host: str) -> str:
    """What to answer a 401 with: a token from the service that it names, or the user's own credentials."""
    scheme, _, rest = challenge.partition(" ")
    own = _own_credentials(host)
    if scheme.lower() == "basic":
        return f"Basic {own}"
    fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
    if scheme.lower() != "bearer" or not fields.get("realm", "").startswith(("https://", "http://")):
        raise ValueError(f"unsupported authentication challenge: {challenge}")
    query = urlencode({key: fields[key] for key in ("service", "scope") if key in fields})
    with _open(f"{fields['realm']}?{query}", {"Authorization": f"Basic {own}"} if own else {}) as answer:
        token = json.loads(answer.read(_LARGEST))
    return f"Bearer {token.get('token') or token.get('access_token') or ''}"


def _own_credentials(host: str) -> str | None:
    """What `apptainer registry login` or `docker login` stored for a registry (base64 of user:password)."""
    names = (host, f"https://{host}", "https://index.docker.io/v1/") if host == _HUB else (host, f"https://{host}")
    directory = home()
    if directory is None:
        return None
    for path in _CREDENTIALS:
        try:
            known = json.loads((directory / path).read_text()).get("auths", {})
        except (OSError, ValueError, AttributeError):
            continue
        for name in names:
            auth = known.get(name, {}).get("auth") if isinstance(known.get(name), dict) else None
            if isinstance(auth, str) and auth:
                return base64.b64encode(base64.b64decode(auth)).decode()
    return None


def _open(url: str, headers: Mapping[str, str]) -> urllib.request.addinfourl:  # type: ignore[name-defined]
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - http only on loopback, else https
    return urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=tls_context())  # noqa: S310


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
    return f"{'http' if plain else 'https'}://{_HUB_API if host == _HUB else host}"


def _refused(text: str, status: int) -> CheckFailed | ProgramFailed:
    if status == 404:
        return CheckFailed(f"the registry has no image {text}", fix="Check the name and the tag.", code="no-such-image")
    if status in (401, 403):
        return CheckFailed(
            f"the registry requires a login for {text}",
            fix="`apptainer registry login docker://HOST`, then try again.",
            code="registry-login",
        )
    return ProgramFailed(f"the registry returned status {status} for {text}", code="registry-unreachable")
