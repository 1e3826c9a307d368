"""What this host reaches over the network: the package index and the registries, each asked once, all at a time."""

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
from toolkit.recipes.load import load_bases
from toolkit.recipes.model import Bootstrap
from toolkit.support.certificates import Bundle, named_bundle, named_bundles, system_bundle, tls_context
from toolkit.support.paths import shipped
from toolkit.support.redaction import server_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

_TIMEOUT = 2.0  # seconds; the answer of `ctk doctor` does not wait longer for a server
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered. `server` is "index" or "registry"; `name` says that to users.

    `status` is the HTTP status; `problem` says why there is none. `skew` is how many seconds the clock of this host is
    ahead of the server's.
    """

    server: str
    name: str
    host: str
    status: int | None = None
    problem: str | None = None
    skew: float | None = None


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """What was seen of the network. `answers` is None where nothing was asked.

    `bundle` holds the certificate authorities that count; `missing_bundles` are named somewhere and cannot be read.
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
        return Answer(self.server, self.name, _host(self.url), problem=f"no answer within {_TIMEOUT:g} s")


def ask_network(*, offline: bool) -> Callable[[], NetworkFacts]:
    """Begin to ask; what is returned waits for the answers, two seconds at most, and gives them."""
    questions = [] if offline else _questions()
    threads = []
    begun = time.monotonic()
    if questions:
        context = tls_context()
        # A daemon: a name server that does not answer is waited for by nobody, at the end of this process neither.
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
    # A page that every index of packages has, and small: the list of all packages has some 40 MB.
    asked = [_Question("index", "package index", f"{index.rstrip('/')}/pip/")] if index.startswith("http") else []
    bases = load_bases(shipped("defs") / "bases.toml").values()
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
    """The request for `url`; credentials in it go to that server alone, not to where it may redirect."""
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
