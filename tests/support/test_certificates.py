"""Which certificate authorities count on a host, and how programs say that a certificate is not accepted."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.support import certificates
from toolkit.support.certificates import (
    Bundle,
    certificate_problem,
    host_bundles,
    named_bundle,
    named_bundles,
    system_bundle,
    trusting,
)

BLOCK = "-----BEGIN CERTIFICATE-----\nMIIB\nAAAA\n-----END CERTIFICATE-----"
OTHER = BLOCK.replace("AAAA", "BBBB")
KEY = "-----BEGIN PRIVATE KEY-----\nS3CRET\n-----END PRIVATE KEY-----"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings of pip, and a system's store."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(certificates, "_SYSTEM", (tmp_path / "none.pem", tmp_path / "system.pem"))
    (tmp_path / "system.pem").write_text(BLOCK)
    (tmp_path / "home/.config/pip").mkdir(parents=True)
    for name in ("first", "second", "third", "fourth"):
        (tmp_path / f"{name}.pem").write_text(OTHER)
    return tmp_path


def test_variables_come_in_their_order_then_pip_then_the_system(host: Path) -> None:
    environment = {"PIP_CONFIG_FILE": str(host / "pip.conf")}
    (host / "pip.conf").write_text(f"[global]\nindex-url = https://x/%s\ncert = {host}/fourth.pem\n")
    steps = [("pip", "fourth"), ("PIP_CERT", "third"), ("REQUESTS_CA_BUNDLE", "second"), ("SSL_CERT_FILE", "first")]
    for origin, name in steps:
        if origin != "pip":
            environment[origin] = str(host / f"{name}.pem")
        found = named_bundle(environment)
        assert found is not None
        assert found.path == host / f"{name}.pem"
        assert found.origin == (origin if origin != "pip" else str(host / "pip.conf"))
        assert [bundle.path for bundle in host_bundles(environment)] == [found.path, host / "system.pem"]
        assert trusting(environment) == {"UV_SYSTEM_CERTS": "true", "SSL_CERT_FILE": str(found.path)}


def test_a_file_that_is_not_there_does_not_count(host: Path) -> None:
    environment = {"SSL_CERT_FILE": "/gone.pem", "PIP_CERT": str(host / "first.pem"), "PIP_CONFIG_FILE": os.devnull}
    assert [bundle.origin for bundle in named_bundles(environment)] == ["SSL_CERT_FILE", "PIP_CERT"]
    assert named_bundle(environment) == Bundle(host / "first.pem", "PIP_CERT")


def test_pip_s_own_files_are_read(host: Path) -> None:
    (host / "home/.config/pip/pip.conf").write_text("[global]\ncert = ~/ca.pem\n")
    (host / "home/ca.pem").write_text(BLOCK)
    found = named_bundle({})
    assert found is not None
    assert found.path == host / "home/ca.pem"
    assert named_bundle({"PIP_CONFIG_FILE": os.devnull}) is None
    (host / "home/.config/pip/pip.conf").write_text("cert = no section\n")
    (host / "home/.pip").mkdir()
    (host / "home/.pip/pip.conf").write_bytes(b"[global]\ncert = /\xff\n")
    assert all(Path("/etc") in bundle.path.parents for bundle in named_bundles({})), "broken files name nothing"


def test_uv_trusts_the_system_unless_the_user_says_otherwise(host: Path) -> None:
    bare = {"PIP_CONFIG_FILE": os.devnull}
    assert trusting(bare) == {"UV_SYSTEM_CERTS": "true"}
    assert trusting({**bare, "UV_SYSTEM_CERTS": "false"}) == {"UV_SYSTEM_CERTS": "false"}
    assert system_bundle() == Bundle(host / "system.pem", "the system")


def test_only_certificates_are_taken_each_once(host: Path) -> None:
    (host / "first.pem").write_bytes(f"# caf\u00e9\n{KEY}\n{OTHER}\n{BLOCK}\n".encode("latin-1"))
    (host / "second.pem").write_text(f"{BLOCK}\n{KEY}")
    bundles = [Bundle(host / f"{name}.pem", "x") for name in ("first", "second")]
    assert certificates.certificates(bundles) == f"{OTHER}\n{BLOCK}\n"


def test_ctk_s_own_requests_trust_what_uv_trusts(monkeypatch: pytest.MonkeyPatch, host: Path) -> None:
    context = certificates.tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED, "a file without certificates is passed over"


REFUSED = [
    "error: client error (Connect): invalid peer certificate: UnknownIssuer",
    "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed "
    "certificate in certificate chain (_ssl.c:1006)'))",
    "curl: (60) SSL certificate problem: unable to get local issuer certificate",
    "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    "fatal: server certificate verification failed. CAfile: none CRLfile: none",
    "Certificate verification failed: The certificate is NOT trusted. The certificate issuer is unknown.",
    "  Unable to locally verify the issuer's authority.",
]
EXPIRED = [
    "x509: certificate has expired or is not yet valid: current time 2026-11-21T00:00:00Z is after 2025-01-01T",
    "invalid peer certificate: Expired",
    "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)",
    "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid (_ssl.c:1006)",
]
MISNAMED = [
    "invalid peer certificate: NotValidForName",
    "x509: certificate is valid for *.badssl.com, not example.org",
    "certificate verify failed: Hostname mismatch, certificate is not valid for 'example.org'. (_ssl.c:1006)",
]


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        *((line, "authority that is not trusted") for line in REFUSED),
        *((line, "expired or not yet valid") for line in EXPIRED),
        *((line, "another host name") for line in MISNAMED),
    ],
)
def test_messages_of_uv_pip_curl_git_apt_and_the_runtime(line: str, meaning: str) -> None:
    problem = certificate_problem(f"Retrying\n{line}\nfailed")
    assert problem is not None
    assert meaning in problem[0]
    assert problem[1]


@given(st.text("abcdefghijklmnop :()'", max_size=200))
def test_other_messages_are_no_certificate_problems(text: str) -> None:
    assert certificate_problem(text) is None
