"""The report for a support ticket: enough to help with, nothing that should not leave the house."""

from __future__ import annotations

import os
import platform
import re
import socket
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.support.paths import home

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.doctor.facts import HostFacts
    from toolkit.support.findings import Finding

_TELLING = (
    *("APPTAINER", "SINGULARITY", "SLURM_CONF", "CTK_", "CUDA", "NVIDIA", "LD_LIBRARY_PATH", "MODULEPATH"),
    *("PYTHON", "PIP_", "UV_", "TMPDIR", "SCRATCH", "XDG_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"),
)
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|WEBHOOK|COOKIE", re.IGNORECASE)


def report(facts: HostFacts, findings: Iterable[Finding], environment: Mapping[str, str] = os.environ) -> str:
    """The text of the report, redacted: no secret, no name of this user or host, no home path."""
    lines = [
        f"ctk {__version__} on {platform.platform()}, Python {platform.python_version()}",
        f"distribution: {_distribution()}",
        "",
        *(f"[{finding.severity.value}] {finding.code}: {finding.message}" for finding in findings),
        "",
        *(f"{name}={_value(name, value)}" for name, value in sorted(environment.items()) if name.startswith(_TELLING)),
    ]
    return redact("\n".join(lines), user=facts.user, home=str(home() or ""), host=socket.gethostname()) + "\n"


def _value(name: str, value: str) -> str:
    if _SECRET_NAME.search(name):
        return "(hidden)"
    # A proxy may be given without a scheme: user:password@proxy:3128.
    return re.sub(r".*@", "(hidden)@", value, flags=re.DOTALL) if name.lower().endswith("_proxy") else value


def redact(text: str, *, user: str, home: str, host: str) -> str:
    """`text` without credentials in addresses, and with HOME, USER and HOST where the real ones stood.

    The name root and its home say nothing of anybody, and stay.
    """
    text = re.sub(r"(\w+://)\S*@", r"\1(hidden)@", text)
    text = re.sub(r"(https?://[^/\s]+)(/\S*)", _without_webhook, text, flags=re.IGNORECASE)
    text = re.sub(r"(?i)([?&][^=\s&]*(?:token|key|sig|secret|pass)[^=\s&]*=)[^&\s]+", r"\1(hidden)", text)
    for real, stand_in in ((home, "HOME"), (host, "HOST"), (user, "USER")):
        if real not in ("", "/", "root", "/root"):
            text = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(real)}(?![A-Za-z0-9_])", stand_in, text, flags=re.IGNORECASE)
    return text


def _without_webhook(address: re.Match[str]) -> str:
    """What a webhook's address ends in is its secret: hooks.slack.com/services/…, discord.com/api/webhooks/…"""
    return f"{address[1]}/(hidden)" if re.search(r"hook|/services/", address[0], re.IGNORECASE) else address[0]


def _distribution() -> str:
    try:
        names = platform.freedesktop_os_release()
    except OSError:
        return "unknown"
    return names.get("PRETTY_NAME", "unknown")
