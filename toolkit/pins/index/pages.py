"""The page of a package on an index: the files that it lists.

Sources: PEP 503 (HTML), PEP 691 and 700 (the same as JSON, with sizes and times).
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from toolkit.support.http_client import may_lead

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"


def read_page(text: str, address: str) -> list[dict[str, Any]]:
    """The files of a page of an index, JSON or HTML, each as PEP 691 has it. Raises ValueError for other JSON.

    A link to where the page may not lead, such as a file of this host, has the address "".
    """
    if not text.lstrip().startswith("{"):
        page = _Links()
        page.feed(text)
        rows = page.rows
    else:
        found = json.loads(text).get("files")
        if not isinstance(found, list):
            raise ValueError("no list of files")
        rows = [row for row in found if isinstance(row, dict) and isinstance(row.get("url"), str)]
    urls = (urljoin(address, row["url"]) for row in rows)
    return [{**row, "url": url if may_lead(address, url) else ""} for row, url in zip(rows, urls, strict=True)]


class _Links(HTMLParser):
    """The links of a PEP 503 page."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag != "a" or not said.get("href"):
            return
        url, _, fragment = (said["href"] or "").partition("#")
        hashes = {"sha256": fragment.removeprefix("sha256=")} if fragment.startswith("sha256=") else {}
        self.rows.append(
            {
                "url": url,
                "filename": unquote(urlsplit(url).path.rsplit("/", 1)[-1]),
                "hashes": hashes,
                "requires-python": said.get("data-requires-python"),
                "yanked": "data-yanked" in said,
            }
        )
