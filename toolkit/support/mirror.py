"""The Debian archive that this host uses: it is near and reachable from here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.support.site import Site

_SOURCES = Path("/etc/apt")


def debian_mirror(site: Site, sources: Path = _SOURCES) -> str | None:
    """The site's mirror, else the first archive of Debian in this host's apt sources, else None.

    Reads both formats of sources.list(5): deb822 stanzas (`URIs:`) and one line each (`deb URI suite …`).
    """
    if site.mirror is not None:
        return site.mirror.value
    files = [sources / "sources.list", *sorted(sources.glob("sources.list.d/*"))]
    for path in files:
        if path.suffix in (".list", ".sources") and path.is_file():
            uri = next((uri for uri in _uris(_text(path)) if re.search(r"/debian/?$", uri)), None)
            if uri is not None:
                return uri
    return None


def _text(path: Path) -> str:
    """The text of a file; empty if only root may read it, because it contains a password."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _uris(text: str) -> list[str]:
    fields = re.findall(r"^URIs:[ \t]*(\S.*)$", text, re.MULTILINE | re.IGNORECASE)
    lines = re.findall(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)", text, re.MULTILINE)
    return [uri for field in fields for uri in field.split()] + lines
