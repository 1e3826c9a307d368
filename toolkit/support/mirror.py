"""The Debian archive that this host itself uses: nearer and more allowed than any that ctk could name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.support.site import Site

_SOURCES = Path("/etc/apt")


def debian_mirror(site: Site, sources: Path = _SOURCES) -> str | None:
    """The site's mirror, else the first archive of Debian in this host's apt sources, else None.

    Reads both notations of sources.list(5): deb822 stanzas (`URIs:`) and one line each (`deb URI suite …`).
    """
    if site.mirror is not None:
        return site.mirror.value
    files = [sources / "sources.list", *sorted(sources.glob("sources.list.d/*"))]
    for path in files:
        if path.suffix in (".list", ".sources") and path.is_file():
            for uri in _uris(path.read_text(errors="replace")):
                if re.search(r"/debian/?$", uri):
                    return uri
    return None


def _uris(text: str) -> list[str]:
    found = re.findall(r"^URIs:\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    return found + re.findall(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)", text, re.MULTILINE)
