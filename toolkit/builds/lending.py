"""What a build uses of this host while it runs, and the image does not keep.

Those are certificate authorities, proxies, and the credentials of package indexes.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.files import Certificates, Directory, TextFile
from toolkit.builds.values import Credential, Proxy
from toolkit.recipes.indexes import credentials
from toolkit.support.certificates import certificates, host_bundles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from toolkit.builds.values import Value
    from toolkit.builds.wheelhouse import Wheelhouse
    from toolkit.recipes.model import Index

# A bind to a missing path ends a build. The runtime itself makes this directory in every image that it builds,
# before %post, so that a base without /mnt has it too. Its scripts are not used in %post (tried with Apptainer 1.4.5).
LENT = "/.singularity.d/actions"
_CERTIFICATES, _APT, _WGET = "certificates.pem", "apt.conf", "wgetrc"
# Which program reads which: OpenSSL and uv, pip, requests and conda, curl, git, Node.js. `CTK_CA_BUNDLE` tells the
# definition that it need not look for certificates in the image.
FILE_VARIABLES = (
    *("CTK_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"),
)
PROXIES = tuple(
    form for name in ("http", "https", "ftp", "all", "no") for form in (f"{name}_proxy", f"{name.upper()}_PROXY")
)
_SETTINGS = {
    _APT: f'Acquire::https::CAInfo "{LENT}/{_CERTIFICATES}";\n',
    _WGET: f"ca_certificate = {LENT}/{_CERTIFICATES}\n",
}


@dataclass(frozen=True, slots=True)
class Loan:
    """The files, the binds and the variables that lend a build what it needs of this host."""

    files: tuple[Directory | Certificates | TextFile, ...]
    binds: tuple[str, ...]
    environment: dict[str, Value]


def lend(
    directory: Path,
    product: str,
    indexes: Sequence[Index] = (),
    environment: Mapping[str, str] = os.environ,
    *,
    house: Wheelhouse | None = None,
) -> Loan:
    """What is lent to a build: files in `directory`, and how the runtime `product` is given them. Nothing is written.

    `house` has package files, in the directory that `lent_directory` names.

    The variables go through the runtime's environment, never through its arguments or the definition: a proxy may hold
    a password. A variable that the user sets for the build (`APPTAINERENV_NAME`) stays.
    """
    values: dict[str, Value] = {name: Proxy(name) for name in PROXIES if environment.get(name)}
    files: tuple[Directory | Certificates | TextFile, ...] = ()
    binds: tuple[str, ...] = ()
    lent = lent_directory(directory)
    bundles = host_bundles(environment)
    if certificates(bundles):
        settings = (TextFile(lent / name, content) for name, content in _SETTINGS.items())
        sources = tuple(bundle.path.absolute() for bundle in bundles)
        files = (Certificates(lent / _CERTIFICATES, sources), *settings)
        values |= _pointers()
    if house is not None:
        files = (*files, *house.files)
    if files:
        files = (Directory(lent), *files)
        binds = (f"{lent}:{LENT}:ro", *(house.binds(LENT) if house is not None else ()))
    for index in indexes:
        values |= {name: Credential(name, index) for name in credentials([index])}
    named = {f"{product.upper()}ENV_{name}": value for name, value in values.items()}
    return Loan(files, binds, {name: value for name, value in named.items() if name not in environment})


def lent_directory(directory: Path) -> Path:
    """The directory in `directory` that a build sees as LENT."""
    return directory / "lent"


@contextlib.contextmanager
def lent_to_shell(directory: Path) -> Iterator[dict[str, str]]:
    """The variables by which programs find this host's certificate authorities, in a file of `directory` for the block.

    `directory` has to be the same in the container. Proxies reach a shell by themselves.
    """
    text = certificates(host_bundles())
    if not text:
        yield {}
        return
    with tempfile.NamedTemporaryFile("w", prefix="ctk-", suffix=".pem", dir=directory) as file:
        file.write(text)
        file.flush()
        yield dict.fromkeys(FILE_VARIABLES, file.name)


def _pointers() -> dict[str, str]:
    """The variables by which the programs of a build find what is lent."""
    return {
        **dict.fromkeys(FILE_VARIABLES, f"{LENT}/{_CERTIFICATES}"),
        "APT_CONFIG": f"{LENT}/{_APT}",
        "WGETRC": f"{LENT}/{_WGET}",
    }
