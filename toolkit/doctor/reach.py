"""The servers that this host can reach: the package index and the registries, each queried once, in parallel."""

from __future__ import annotations

import base64
import os
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from toolkit.pins.bases.registry import api_address, parse_reference
from toolkit.pins.index.uv import index_address
from toolkit.recipes.bases import bases_in
from toolkit.recipes.model import Bootstrap
from toolkit.support.certificates import Bundle, named_bundle, named_bundles, system_bundle, tls_context
from toolkit.support.paths import shipped
from toolkit.support.redaction import server_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

_TIMEOUT = 2.0  # seconds; `ctk doctor` does not wait longer for a server
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a server. `server` is "index" or "registry"; `name` is its name in messages.

    `status` is the HTTP status; `problem` says why there is none. `skew` is how many seconds the clock of this host is
    ahead of the server's clock.
    """

    server: str
    name: str
    host: str
    status: int | None = None
    problem: str | None = None
    skew: float | None = None


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """The observed state of the network. `answers` is None if nothing was asked.

    `bundle` has the certificate authorities in use; `missing_bundles` are named by a setting, but cannot be read.
    `proxies` are shown without credentials.
    """

    answers: tuple[Answer, ...] | None
    bundle: Bundle | None = None
    missing_bundles: tuple[Bundle, ...] = ()
    proxies: tuple[str, ...] = ()


@dataclass(slots=True)
class _Question:
    server: str
    name: str
    url: str
    answer: Answer | None = field(default=None)

    def ask(self, context: ssl.SSLContext) -> None:
        self.answer = _ask(self.server, self.name, self.url, context)

    def given_up(self) -> Answer:
        return Answer(self.server, self.name, _host(self.url), problem=f"no response within {_TIMEOUT:g} s")


def ask_network(*, offline: bool) -> Callable[[], NetworkFacts]:
    """Start the requests. The returned function waits for the responses, two seconds at most, and returns them."""
    questions = [] if offline else _questions()
    threads = []
    begun = time.monotonic()
    if questions:
        context = tls_context()
        # Daemon threads: the process does not wait at its end for a name server that does not respond.
        threads = [threading.Thread(target=question.ask, args=(context,), daemon=True) for question in questions]
    for thread in threads:
        thread.start()

    def collect() -> NetworkFacts:
        for thread in threads:
            thread.join(max(0.0, begun + _TIMEOUT - time.monotonic()))
        answers = None if offline else tuple(question.answer or question.given_up() for question in questions)
        missing = tuple(bundle for bundle in named_bundles() if not os.access(bundle.path, os.R_OK))
        return NetworkFacts(answers, named_bundle() or system_bundle(), missing, proxies(os.environ))

    return collect


def proxies(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The proxies that are set, as NAME=SERVER without credentials; of `no_proxy` the name alone."""
    names = [form for name in _PROXIES for form in (name, name.upper()) if environment.get(form)]
    return tuple(name if name.lower() == "no_proxy" else f"{name}={server_of(environment[name])}" for name in names)


def _questions() -> list[_Question]:
    index = index_address()
    # A small page that every package index has: the list of all packages is about 40 MB.
    asked = [_Question("index", "package index", f"{index.rstrip('/')}/pip/")] if index.startswith("http") else []
    bases = bases_in(shipped("defs")).values()
    hosts = {parse_reference(base.reference).host for base in bases if base.bootstrap == Bootstrap.DOCKER}
    return [*asked, *(_Question("registry", "registry", f"{api_address(host)}/v2/") for host in sorted(hosts))]


def _ask(server: str, name: str, url: str, context: ssl.SSLContext) -> Answer:
    host = _host(url)
    try:
        with urllib.request.urlopen(_request(url), timeout=_TIMEOUT, context=context) as answer:  # noqa: S310
            return Answer(server, name, host, answer.status, skew=_skew(answer.headers["Date"]))
    except urllib.error.HTTPError as error:
        return Answer(server, name, host, error.code, skew=_skew(error.headers["Date"]))
    except (OSError, ValueError, HTTPException) as error:
        return Answer(server, name, host, problem=str(getattr(error, "reason", error)) or type(error).__name__)


def _request(url: str) -> urllib.request.Request:
    """The request for `url`; credentials in it go to that server only, not to a redirect."""
    parts = urlsplit(url)
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    request = urllib.request.Request(plain)  # noqa: S310 - an index or a registry, http or https
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    return request


def _host(url: str) -> str:
    return server_of(url).rpartition("/")[2]


def _skew(date: str | None) -> float | None:
    with suppress(TypeError, ValueError):
        return time.time() - parsedate_to_datetime(date or "").timestamp()
    return None
