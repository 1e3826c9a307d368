"""The certificate authorities that this host trusts, and what programs print if a certificate is not accepted."""

from __future__ import annotations

import configparser
import contextlib
import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.paths import home

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator, Mapping

# Debian, Ubuntu, Arch; RHEL, Fedora; openSUSE; Alpine and others. The first that exists is the system's.
_SYSTEM = tuple(
    map(
        Path,
        (
            "/etc/ssl/certs/ca-certificates.crt",
            "/etc/pki/tls/certs/ca-bundle.crt",
            "/etc/ssl/ca-bundle.pem",
            "/etc/ssl/cert.pem",
        ),
    )
)
# In order of precedence: for all programs, for requests, for pip.
VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
# Only this part of a file is read: some users keep the private key of a client certificate in it.
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----\s.*?-----END CERTIFICATE-----", re.DOTALL)

_FIX_AUTHORITY = (
    "Ask the administrator for the certificate authority of this network, and set SSL_CERT_FILE to a file that holds "
    "it. `ctk doctor` checks the package index and the registries; `ctk build` passes that file to the build."
)
# What a program prints, what it means, and the fix. The first match is used: an expired certificate is often reported
# as one that could not be verified, followed by the reason.
PROBLEMS = (
    (
        r"certificate (?:has|is) (?:expired|not yet valid)|invalid peer certificate: (?:Expired|NotValidYet)"
        r"|uses expired certificate|(?:expired|not yet valid):? verification time",
        "the certificate of a server is expired or not yet valid, according to the clock of this host",
        "Compare `date` with the real time. If the clock is correct, the server needs a new certificate.",
    ),
    (
        r"invalid peer certificate: NotValidForName|hostname mismatch|certificate is (?:not )?valid for"
        r"|no alternative certificate subject name",
        "the certificate of a server is for another host name",
        "Check the address. A proxy or a captive portal of this network may have answered instead of the server.",
    ),
    (
        r"certificate signed by unknown authority|CERTIFICATE_VERIFY_FAILED|certificate verify failed"
        r"|unable to get (?:local )?issuer certificate|self[- ]signed certificate|invalid peer certificate"
        r"|UnknownIssuer|SSL certificate problem|server certificate verification failed|SSLCertVerificationError"
        r"|certificate is NOT trusted|Unable to locally verify the issuer|x509: ",
        "the certificate of a server is signed by a certificate authority that is not trusted",
        _FIX_AUTHORITY,
    ),
)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A file of certificate authorities, and what names it: a variable, pip's configuration, or the system."""

    path: Path
    origin: str


def named_bundles(environment: Mapping[str, str] = os.environ) -> tuple[Bundle, ...]:
    """The settings that name a certificate file, in order of precedence, even if the file does not exist."""
    variables = (Bundle(Path(environment[name]), name) for name in VARIABLES if environment.get(name))
    return (*variables, *_of_pip(environment))


def named_bundle(environment: Mapping[str, str] = os.environ) -> Bundle | None:
    """The file that the user or the site chose; None if no setting names a readable file."""
    return next((bundle for bundle in named_bundles(environment) if _is_file(bundle.path)), None)


def system_bundle() -> Bundle | None:
    """The system's own store as one file; None if there is none."""
    return next((Bundle(path, "the system") for path in _SYSTEM if _is_file(path)), None)


def host_bundles(environment: Mapping[str, str] = os.environ) -> tuple[Bundle, ...]:
    """All that this host trusts: the chosen file, and the system's, the only one that some programs use."""
    named, system = named_bundle(environment), system_bundle()
    others = [system] if system is not None and (named is None or system.path != named.path) else []
    return (*([named] if named is not None else []), *others)


def certificates(bundles: Iterable[Bundle]) -> str:
    """The certificates of some files as one text, each once, without private keys and comments."""
    texts = [bundle.path.read_text(encoding="utf-8", errors="replace") for bundle in bundles]
    return "".join(f"{block}\n" for block in dict.fromkeys(block for text in texts for block in _BLOCK.findall(text)))


def trusting(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with which uv and the container runtime trust what this host trusts.

    Both honour SSL_CERT_FILE; neither knows pip's variables. uv uses the system's store only on request.
    """
    wanted = {"UV_SYSTEM_CERTS": environment.get("UV_SYSTEM_CERTS") or "true"}
    if (bundle := named_bundle(environment)) is not None:
        wanted["SSL_CERT_FILE"] = str(bundle.path.absolute())
    return wanted


def tls_context() -> ssl.SSLContext:
    """The TLS context of ctk's own requests: it trusts what this host trusts, wherever Python's default store is."""
    return _context(host_bundles())


@cache
def _context(bundles: tuple[Bundle, ...]) -> ssl.SSLContext:
    """Reading some hundred authorities takes longer than a request: it is done once."""
    import ssl

    context = ssl.create_default_context()
    for bundle in bundles:
        with contextlib.suppress(ssl.SSLError):  # not a file of certificates: `ctk doctor` names it
            context.load_verify_locations(bundle.path)
    return context


def describe_trust(environment: Mapping[str, str] = os.environ) -> str:
    """Which certificate authorities are trusted, by which setting, and the settings without effect."""
    named, system = named_bundle(environment), system_bundle()
    used = named or system
    missing = [bundle for bundle in named_bundles(environment) if not _is_file(bundle.path)]
    return "; ".join(
        [
            f"trusted authorities: {used.path}, set by {used.origin}" if used else "no trusted authorities",
            *(f"{bundle.origin} names {bundle.path}, which cannot be read" for bundle in missing),
        ]
    )


def certificate_problem(text: str) -> tuple[str, str] | None:
    """The certificate problem that a program's output reports, and the fix; None if it reports none."""
    matching = ((meaning, fix) for pattern, meaning, fix in PROBLEMS if re.search(pattern, text, re.IGNORECASE))
    return next(matching, None)


def _of_pip(environment: Mapping[str, str]) -> Iterator[Bundle]:
    """`cert` in pip's configuration, in order of precedence (pip's documentation, "Configuration files")."""
    chosen = environment.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return
    directory = home()
    user = Path(environment.get("XDG_CONFIG_HOME") or (directory / ".config" if directory else "/nonexistent"))
    files = [
        *([Path(chosen)] if chosen else []),
        Path(sys.prefix, "pip.conf"),
        user / "pip/pip.conf",
        *([directory / ".pip/pip.conf"] if directory else []),
        Path("/etc/pip.conf"),
        Path("/etc/xdg/pip/pip.conf"),
    ]
    for file in files:
        reader = configparser.RawConfigParser()
        try:
            reader.read_string(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        if path := reader.get("global", "cert", fallback=""):
            yield Bundle(Path(path).expanduser(), str(file))


def _is_file(path: Path) -> bool:
    return os.access(path, os.R_OK) and path.is_file()
