"""The site that `make docs` builds: the Markdown pages of the checkout, where they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "ctk"
release = __version__
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"ctk {__version__}"
html_copy_source = False
myst_heading_anchors = 4  # as GitHub gives them

root_doc = "README"
# What the sidebar lists. A heading on GitHub would be noise there, so it is not in README.md.
_CONTENTS = {
    "Use ctk": (
        "docs/quickstart",
        "docs/manual",
        "docs/bases",
        "docs/clusters",
        "docs/troubleshooting",
        "docs/findings",
        "docs/security",
    ),
    "日本語": ("README.ja", "docs/quickstart.ja", "docs/troubleshooting.ja"),
    "For a site": ("docs/site",),
    "For contributors": ("CONTRIBUTING", "docs/architecture", "CHANGELOG"),
    "Measurements": ("benchmarks/README", "benchmarks/RESULTS", "benchmarks/SOAK"),
}
include_patterns = [f"{page}.md" for page in (root_doc, *(page for pages in _CONTENTS.values() for page in pages))]


def setup(app: Sphinx) -> None:
    """Add what only the site has: its sidebar, and an address without a file name."""
    app.connect("source-read", _add_contents)
    app.connect("build-finished", _add_index)


def _add_contents(_: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        for caption, pages in _CONTENTS.items():
            listed = "\n".join(f"/{page}" for page in pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def _add_index(app: Sphinx, exception: Exception | None) -> None:
    if exception is None:
        redirect = f'<!doctype html><title>ctk</title><meta http-equiv="refresh" content="0; url={root_doc}.html">\n'
        Path(app.outdir, "index.html").write_text(redirect, encoding="utf-8")
