"""Package indexes beside PyPI: from an address or an option of pip to an `[[index]]` of a recipe."""

from __future__ import annotations

import netrc
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit, urlunsplit

from toolkit.recipes.model import Index, IndexKind
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def index_of_option(option: str, url: str) -> tuple[Index | None, Finding | None]:
    """The index that `--index-url URL` and its kin name, without any credentials; None if it is no web address."""
    parts = web_address(url)
    if parts is None:
        return None, None
    user, _, netloc = parts.netloc.rpartition("@")
    name = name_of(url)
    kind = IndexKind.FIND_LINKS if option in ("-f", "--find-links") else IndexKind.INDEX
    index = Index(name, urlunsplit(parts._replace(netloc=netloc)), kind=kind)
    if not user:
        return index, None
    message = f"the credentials in the URL of the index {name} were not written to the recipe"
    variable = credentials_variable(name)
    fix = f"Set {variable}_USERNAME and {variable}_PASSWORD where you run ctk, or write them to ~/.netrc."
    return index, Finding("credentials-left-out", Severity.WARNING, message, fix)


def web_address(url: str) -> SplitResult | None:
    """The parts of an address of http or https; None if it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket that belongs to no IPv6 address
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None


def name_of(url: str) -> str:
    """A name for the index at `url`: its host, as a name may be written."""
    parts = web_address(url)
    host = (parts.hostname if parts else None) or ""
    return re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-") or "index"


def credentials_variable(name: str) -> str:
    """The beginning of the variables from which uv takes an index's user and password."""
    return f"UV_INDEX_{re.sub(r'[^A-Z0-9]', '_', name.upper())}"


def credentials(indexes: Iterable[Index]) -> dict[str, str]:
    """The variables with the user and password of each index, from the environment, else from ~/.netrc.

    An unreadable or invalid netrc is ignored: the resolver reports it if it is needed.
    """
    try:
        known = netrc.netrc(os.environ.get("NETRC")).hosts
    except (OSError, netrc.NetrcParseError):
        known = {}
    found: dict[str, str] = {}
    for index in indexes:
        variable = credentials_variable(index.name)
        entry = known.get(urlsplit(index.url).hostname or "")
        user = os.environ.get(f"{variable}_USERNAME")
        password = os.environ.get(f"{variable}_PASSWORD")
        if user is None and password is None and entry:
            user, password = entry[0], entry[2]
        pair = {f"{variable}_USERNAME": user, f"{variable}_PASSWORD": password}
        found |= {name: value for name, value in pair.items() if value is not None}
    return found
