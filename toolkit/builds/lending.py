"""What a build gets of this host while it runs, and the image does not keep: certificate authorities and proxies."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.support.certificates import certificates, host_bundles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# A bind onto what is not there ends a build. The runtime itself makes this directory in every image that it builds,
# before %post, so that a base without /mnt has it too. Its scripts are not used in %post (tried with Apptainer 1.4.5).
LENT = "/.singularity.d/actions"
_CERTIFICATES, _APT, _WGET = "certificates.pem", "apt.conf", "wgetrc"
# Which program reads which: OpenSSL and uv, pip, requests and conda, curl, git, Node.js. `CTK_CA_BUNDLE` tells the
# definition that it need not look for certificates in the image.
_FILE_VARIABLES = (
    *("CTK_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"),
)
_PROXIES = tuple(
    form for name in ("http", "https", "ftp", "all", "no") for form in (f"{name}_proxy", f"{name.upper()}_PROXY")
)


@dataclass(frozen=True, slots=True)
class Loan:
    """The bind and the variables that lend a build what it needs of this host."""

    binds: tuple[str, ...]
    environment: dict[str, str]


def lend(folder: Path, product: str, environment: Mapping[str, str] = os.environ) -> Loan:
    """Write what is lent into a new directory in `folder`, and say how the runtime `product` is given it.

    The variables go through the runtime's environment, never through its arguments or the definition: a proxy may hold
    a password. A variable that the user sets for the build (`APPTAINERENV_NAME`) stays.
    """
    variables = {name: environment[name] for name in _PROXIES if environment.get(name)}
    binds: tuple[str, ...] = ()
    if text := certificates(host_bundles(environment)):
        lent = folder / "lent"
        lent.mkdir(mode=0o755)
        for name, content in {_CERTIFICATES: text, **_SETTINGS}.items():
            (lent / name).write_text(content, encoding="utf-8")
            (lent / name).chmod(0o644)  # apt reads it as its own user, _apt
        binds = (f"{lent}:{LENT}:ro",)
        variables |= _pointers()
    named = {f"{product.upper()}ENV_{name}": _escaped(value) for name, value in variables.items()}
    return Loan(binds, {name: value for name, value in named.items() if name not in environment})


@contextlib.contextmanager
def lent_to_shell(folder: Path) -> Iterator[dict[str, str]]:
    """The variables by which programs find this host's certificate authorities, in a file of `folder` for the block.

    `folder` has to be the same in the container. Proxies reach a shell by themselves.
    """
    text = certificates(host_bundles())
    if not text:
        yield {}
        return
    with tempfile.NamedTemporaryFile("w", prefix="ctk-", suffix=".pem", dir=folder) as file:
        file.write(text)
        file.flush()
        yield dict.fromkeys(_FILE_VARIABLES, file.name)


def lending_commands(
    folder: Path, product: str, environment: Mapping[str, str] = os.environ
) -> tuple[list[str], tuple[str, ...]]:
    """The shell's commands for what `lend` does, and the binds. The value of a proxy is in none of them."""
    prefix = f"{product.upper()}ENV_"
    proxies = [f'export {prefix}{name}="${name}"' for name in _PROXIES if environment.get(name)]
    bundles = host_bundles(environment)
    if not bundles:
        return proxies, ()
    lent = folder / "lent"
    files = " ".join(shlex.quote(str(bundle.path)) for bundle in bundles)
    commands = [f"mkdir -- {shlex.quote(str(lent))}", f"cat -- {files} > {shlex.quote(str(lent / _CERTIFICATES))}"]
    for name, content in _SETTINGS.items():
        commands.append(f"printf '%s' {shlex.quote(content)} > {shlex.quote(str(lent / name))}")
    commands += [f"export {prefix}{name}={value}" for name, value in _pointers().items()]
    return [*commands, *proxies], (f"{lent}:{LENT}:ro",)


_SETTINGS = {
    _APT: f'Acquire::https::CAInfo "{LENT}/{_CERTIFICATES}";\n',
    _WGET: f"ca_certificate = {LENT}/{_CERTIFICATES}\n",
}


def _pointers() -> dict[str, str]:
    """The variables by which the programs of a build find what is lent."""
    return {
        **dict.fromkeys(_FILE_VARIABLES, f"{LENT}/{_CERTIFICATES}"),
        "APT_CONFIG": f"{LENT}/{_APT}",
        "WGETRC": f"{LENT}/{_WGET}",
    }


def _escaped(value: str) -> str:
    """`value` for the shell in which the runtime evaluates such variables: nothing in it is expanded."""
    return re.sub(r"([\\$`])", r"\\\1", value)
