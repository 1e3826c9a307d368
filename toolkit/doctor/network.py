"""What the facts about the network mean: index, registries, certificates, proxies, clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support.certificates import certificate_problem
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from toolkit.doctor.reach import Answer, NetworkFacts

_MAX_SKEW = 60.0  # seconds; Slurm's MUNGE refuses what is more than 300 s old (munge(7)), certificates err by less
_REFUSED = (401, 403, 407)
_WITHOUT = "Without it: a base image of your own (`--base FILE.sif`), or a build on the login node."


def judge_network(facts: NetworkFacts) -> tuple[Finding, ...]:
    """All findings about the network."""
    found = [*_bundles(facts), *_proxies(facts)]
    if facts.answers is None:
        message = "Network: not tried (--offline): the package index, the registries, their certificates, the clock."
        return (*found, Finding("network-skipped", Severity.INFO, message))
    return (*found, *map(_answer, facts.answers), *_clock(facts.answers))


def _bundles(facts: NetworkFacts) -> tuple[Finding, ...]:
    """Which certificate authorities count, and what names a file that is not there."""
    missing = tuple(
        Finding(
            "certificates-missing",
            Severity.WARNING,
            f"Certificates: {bundle.origin} names {bundle.path}, which cannot be read.",
            f"Correct {bundle.origin}, or remove the setting.",
        )
        for bundle in facts.missing_bundles
    )
    if facts.bundle is None:
        fix = "Ask the administrator for the package ca-certificates, or set SSL_CERT_FILE."
        return (*missing, Finding("no-certificates", Severity.WARNING, "Certificates: none are installed here.", fix))
    message = f"Certificates: {facts.bundle.path} (set by {facts.bundle.origin}); builds use them as well."
    return (*missing, Finding("certificates", Severity.OK, message))


def _proxies(facts: NetworkFacts) -> tuple[Finding, ...]:
    if not facts.proxies:
        return ()
    return (Finding("proxies", Severity.INFO, f"Proxies: {', '.join(facts.proxies)}; builds use them as well."),)


def _answer(answer: Answer) -> Finding:
    what = f"{answer.name.capitalize()}: {answer.host}"
    if answer.problem is not None:
        if (problem := certificate_problem(answer.problem)) is not None:
            meaning, fix = problem
            return Finding(f"{answer.code}-certificate", Severity.WARNING, f"{what} cannot be used: {meaning}.", fix)
        message = f"{what} cannot be reached ({answer.problem})."
        return Finding(f"{answer.code}-unreachable", Severity.WARNING, message, _way_out(answer))
    refused = answer.status in _REFUSED and answer.code == "index"  # a registry answers so until a token is fetched
    if refused or answer.status is None or answer.status >= 500:
        message = f"{what} answers with HTTP status {answer.status}."
        return Finding(f"{answer.code}-refused", Severity.WARNING, message, _way_out(answer))
    return Finding(answer.code, Severity.OK, f"{what} answers.")


def _way_out(answer: Answer) -> str:
    if answer.code == "index":
        return "UV_DEFAULT_INDEX or PIP_INDEX_URL names another index, https_proxy a proxy."
    return _WITHOUT


def _clock(answers: tuple[Answer, ...]) -> tuple[Finding, ...]:
    """The clock, by the servers that say what time it is: the one that is nearest, since a cache may keep a date."""
    skews = [answer.skew for answer in answers if answer.skew is not None]
    if not skews:
        return ()
    skew = min(skews, key=abs)
    if abs(skew) <= _MAX_SKEW:
        return (Finding("clock", Severity.OK, "Clock: agrees with the servers that were asked."),)
    direction = "ahead of" if skew > 0 else "behind"
    message = f"Clock: {abs(skew):.0f} s {direction} the servers that were asked; certificates and Slurm may refuse it."
    return (Finding("clock-skew", Severity.WARNING, message, "Ask the administrator to synchronize the clock (NTP)."),)
