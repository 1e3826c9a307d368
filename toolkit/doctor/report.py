"""The report for a support ticket, without confidential data."""

from __future__ import annotations

import os
import platform
import re
import socket
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.support.paths import home
from toolkit.support.redaction import redact, server_of
from toolkit.support.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.doctor.facts import HostFacts
    from toolkit.support.findings import Finding


def _of_both(*names: str) -> tuple[str, ...]:
    return tuple(f"{runtime}_{name}" for runtime in ("APPTAINER", "SINGULARITY") for name in names)


# The variables whose values a report shows, by the form of the value. A value of another form is reported as "is set".
_PATHS = (
    *_of_both("CACHEDIR", "TMPDIR", "BIND", "BINDPATH", "CONFIGDIR"),
    *("CTK_HOME", "CTK_SITE", "SCRATCH", "SLURM_CONF", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
    *("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "MODULEPATH", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE"),
    *("PIP_CACHE_DIR", "PIP_CERT", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "UV_CACHE_DIR"),
)
_SWITCHES = (
    *_of_both("NV", "NVCCLI", "NO_MOUNT", "NOHTTPS", "CONTAIN", "CONTAINALL", "FAKEROOT", "USERNS", "WRITABLE"),
    *("CTK_TRACE", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES"),
    *("PIP_NO_INDEX", "PIP_USER", "PYTHONNOUSERSITE", "UV_OFFLINE"),
)
_ADDRESSES = (
    *("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"),
    *("UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL"),
)
# Only the names of these are useful: a container gets the variable, or the user is logged in.
_NAMES = (
    *_of_both("DOCKER_USERNAME", "DOCKER_PASSWORD", "ENCRYPTION_PASSPHRASE", "ENCRYPTION_PEM_PATH"),
    *(
        f"{runtime}ENV_{name}"
        for runtime in ("APPTAINER", "SINGULARITY")
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PREPEND_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES")
    ),
    *("LD_PRELOAD", "PIP_CONSTRAINT", "PIP_REQUIRE_HASHES", "PYTHONSTARTUP", "UV_CONSTRAINT", "no_proxy", "NO_PROXY"),
)
# All others with these prefixes are only counted: a user chose their names.
_FAMILIES = ("APPTAINERENV_", "APPTAINER_", "SINGULARITYENV_", "SINGULARITY_", "CTK_", "PIP_", "UV_")

_PATH = re.compile(r"[~/][\w./~:,+ -]*")
_SWITCH = re.compile(r"[A-Za-z0-9,._:-]{0,200}")
# Their values are account names, which may appear elsewhere too: in a path, in a program's output.
_USERS = ("USER", "LOGNAME", "SUDO_USER", *_of_both("DOCKER_USERNAME"))
_ACCOUNTS = ("SBATCH_ACCOUNT", "SALLOC_ACCOUNT", "SLURM_ACCOUNT", "SLURM_JOB_ACCOUNT")


def report(facts: HostFacts, findings: Iterable[Finding], environment: Mapping[str, str] = os.environ) -> str:
    """The text of the report: no secret, no name of this user, host or account, no home path.

    It shows the values only of the environment variables listed above, and only if they have the expected form.
    """
    lines = [
        f"ctk {__version__} on {platform.platform()}, Python {platform.python_version()}",
        f"distribution: {_distribution()}",
        "",
        *(f"[{finding.severity.value}] {finding.code}: {finding.message}" for finding in findings),
        "",
        *environment_lines(environment),
    ]
    names = {
        str(home() or ""): "~",
        socket.gethostname(): "HOST",
        facts.user: "USER",
        **{environment.get(name, ""): "USER" for name in _USERS},
        **{environment.get(name, ""): "ACCOUNT" for name in _ACCOUNTS},
    }
    return "".join(f"{printable(anonymous(redact(line), names))}\n" for line in lines)


def environment_lines(environment: Mapping[str, str]) -> list[str]:
    """The report's lines on the environment, one per variable."""
    shown = [f"{name}{_value(name, value)}" for name, value in sorted(environment.items()) if name in _KNOWN]
    others = [name for name in environment if name not in _KNOWN]
    counts = ((family, sum(name.startswith(family) for name in others)) for family in _FAMILIES)
    return [*shown, *(f"{family}*: {number} more set" for family, number in counts if number)]


def _value(name: str, value: str) -> str:
    if (name in _PATHS and _PATH.fullmatch(value)) or (name in _SWITCHES and _SWITCH.fullmatch(value)) or not value:
        return f"={value}"
    if name in _ADDRESSES:
        return f"={' '.join(map(server_of, value.split()))}"
    return " is set"


_KNOWN = frozenset((*_PATHS, *_SWITCHES, *_ADDRESSES, *_NAMES))


def anonymous(text: str, names: Mapping[str, str]) -> str:
    """`text` with a stand-in for each of `names`: longer ones first, hosts with their domain.

    The name root and its home identify nobody, and are kept.
    """
    for real, stand_in in sorted(names.items(), key=lambda pair: -len(pair[0])):
        if real not in ("", "/", "root", "/root"):
            domain = r"(?:\.[A-Za-z0-9-]+)*" if stand_in == "HOST" else ""
            whole = rf"(?<![A-Za-z0-9_]){re.escape(real)}(?![A-Za-z0-9_]){domain}"
            text = re.sub(whole, stand_in, text, flags=re.IGNORECASE)
    return text


def _distribution() -> str:
    try:
        names = platform.freedesktop_os_release()
    except OSError:
        return "unknown"
    return names.get("PRETTY_NAME", "unknown")
