"""What the facts about the network mean: index, registries, certificates, proxies, clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support.certificates import certificate_problem
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.doctor.reach import Answer, NetworkFacts
    from toolkit.support.findings import Rule

_MAX_SKEW = 60.0  # seconds; Slurm's MUNGE rejects credentials older than 300 s (munge(7)); certificates fail earlier
_REFUSED = (401, 403, 407)
_WITHOUT = "Use a local base image (`--base FILE.sif`), or build on the login node."


def _bundles(facts: NetworkFacts) -> Iterator[Finding]:
    """The certificate authorities in use, and the settings that name a missing file."""
    for bundle in facts.missing_bundles:
        yield Finding(
            "certificates-missing",
            Severity.WARNING,
            f"Certificates: {bundle.origin} names {bundle.path}, which cannot be read.",
            f"Correct {bundle.origin}, or remove the setting.",
        )
    if facts.bundle is None:
        fix = "Ask the administrator for the package ca-certificates, or set SSL_CERT_FILE."
        yield Finding("no-certificates", Severity.WARNING, "Certificates: none are installed on this host.", fix)
    else:
        message = f"Certificates: {facts.bundle.path} (set by {facts.bundle.origin}); builds use them as well."
        yield Finding("certificates", Severity.OK, message)


def _proxies(facts: NetworkFacts) -> Iterator[Finding]:
    if facts.proxies:
        yield Finding("proxies", Severity.INFO, f"Proxies: {', '.join(facts.proxies)}; builds use them as well.")


def _answers(facts: NetworkFacts) -> Iterator[Finding]:
    if facts.answers is None:
        message = "Network: not checked (--offline): the package index, the registries, their certificates, the clock."
        yield Finding("network-skipped", Severity.INFO, message)
    else:
        yield from map(_answer, facts.answers)


def _answer(answer: Answer) -> Finding:
    what = f"{answer.name.capitalize()}: {answer.host}"
    of_index = answer.server == "index"
    if answer.problem is not None:
        if (problem := certificate_problem(answer.problem)) is not None:
            code = "index-certificate" if of_index else "registry-certificate"
            return Finding(code, Severity.WARNING, f"{what} cannot be used: {problem[0]}.", problem[1])
        code = "index-unreachable" if of_index else "registry-unreachable"
        return Finding(code, Severity.WARNING, f"{what} cannot be reached ({answer.problem}).", _way_out(answer))
    refused = answer.status in _REFUSED and of_index  # a registry sends these until a token is fetched
    if refused or answer.status is None or answer.status >= 500:
        code = "index-refused" if of_index else "registry-refused"
        message = f"{what} answers with HTTP status {answer.status}."
        return Finding(code, Severity.WARNING, message, _way_out(answer))
    return Finding("index" if of_index else "registry", Severity.OK, f"{what} answers.")


def _way_out(answer: Answer) -> str:
    if answer.server == "index":
        return "Set UV_DEFAULT_INDEX or PIP_INDEX_URL to another index, or https_proxy to a proxy."
    return _WITHOUT


def _clock(facts: NetworkFacts) -> Iterator[Finding]:
    """The clock, compared with the servers' times: the nearest one, because a cache may send an old date."""
    skews = [answer.skew for answer in facts.answers or () if answer.skew is not None]
    if not skews:
        return
    skew = min(skews, key=abs)
    if abs(skew) <= _MAX_SKEW:
        yield Finding("clock", Severity.OK, "Clock: agrees with the servers.")
        return
    direction = "ahead of" if skew > 0 else "behind"
    message = (
        f"Clock: {abs(skew):.0f} s {direction} the servers; certificates and Slurm's authentication may be rejected."
    )
    yield Finding("clock-skew", Severity.WARNING, message, "Ask the administrator to synchronize the clock (NTP).")


NETWORK_RULES: tuple[Rule[NetworkFacts], ...] = (_bundles, _proxies, _answers, _clock)
