"""What a server's answer means: every rule over plain values."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.doctor.network import NETWORK_RULES
from toolkit.doctor.reach import Answer, NetworkFacts
from toolkit.support.certificates import Bundle
from toolkit.support.findings import Finding, Severity, apply_rules

BUNDLE = Bundle(Path("/etc/ssl/certs/ca-certificates.crt"), "the system")
UNKNOWN = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate"
EXPIRED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)"


def index(status: int | None = 200, problem: str | None = None, skew: float | None = None) -> Answer:
    return Answer("index", "package index", "pypi.example", status, problem, skew)


def registry(status: int | None = 401, problem: str | None = None, skew: float | None = None) -> Answer:
    return Answer("registry", "registry", "registry.example", status, problem, skew)


def found(*answers: Answer) -> dict[str, Finding]:
    return {finding.code: finding for finding in apply_rules(NETWORK_RULES, NetworkFacts(answers, BUNDLE))}


def test_a_good_network_has_nothing_to_fix() -> None:
    findings = found(index(skew=0.4), registry(skew=-2.0))
    assert list(findings) == ["certificates", "index", "registry", "clock"]
    assert {finding.severity for finding in findings.values()} == {Severity.OK}


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (index(None, UNKNOWN), "index-certificate", "authority that is not trusted"),
        (index(None, EXPIRED), "index-certificate", "expired or not yet valid"),
        (registry(None, UNKNOWN), "registry-certificate", "registry.example cannot be used"),
        (index(None, "[Errno -2] Name or service not known"), "index-unreachable", "Name or service not known"),
        (registry(None, "no response within 2 s"), "registry-unreachable", "no response within 2 s"),
        (index(None, "Tunnel connection failed: 407 Proxy Authentication Required"), "index-unreachable", "407"),
        (index(403), "index-refused", "HTTP status 403"),
        (registry(503), "registry-refused", "HTTP status 503"),
    ],
)
def test_each_network_problem_has_a_fix(answer: Answer, code: str, words: str) -> None:
    finding = found(answer)[code]
    assert finding.severity is Severity.WARNING
    assert words in finding.message
    assert finding.fix


def test_a_registry_that_asks_for_a_token_and_an_index_without_that_page_are_well() -> None:
    assert {"registry", "index"} <= found(registry(401), index(404)).keys()


@pytest.mark.parametrize(("skew", "words"), [(400.0, "400 s ahead of"), (-86_400.0, "86400 s behind")])
def test_a_wrong_clock_is_reported(skew: float, words: str) -> None:
    assert words in found(index(skew=skew))["clock-skew"].message
    assert "clock-skew" not in found(index(skew=skew), registry(skew=1.0)), "one server's cache kept an old date"


def test_skipped_checks_are_reported() -> None:
    [certificates, skipped] = apply_rules(NETWORK_RULES, NetworkFacts(None, BUNDLE))
    assert (certificates.code, skipped.code) == ("certificates", "network-skipped")
    assert "not checked (--offline)" in skipped.message


def test_certificates_that_are_missing_are_named_with_what_names_them() -> None:
    missing = (Bundle(Path("/gone.pem"), "REQUESTS_CA_BUNDLE"),)
    first, second, _ = apply_rules(NETWORK_RULES, NetworkFacts(None, None, missing))
    assert (first.code, second.code) == ("certificates-missing", "no-certificates")
    assert "REQUESTS_CA_BUNDLE names /gone.pem" in first.message


def test_proxies_are_reported() -> None:
    findings = apply_rules(
        NETWORK_RULES, NetworkFacts(None, BUNDLE, (), ("https_proxy=http://proxy.example:3128", "no_proxy"))
    )
    assert "https_proxy=http://proxy.example:3128, no_proxy; builds use them" in findings[1].message
