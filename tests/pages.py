"""What the documents show: their blocks of code, and the commands in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "README.ja.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/quickstart.md",
    "docs/quickstart.ja.md",
    "docs/troubleshooting.md",
    "docs/troubleshooting.ja.md",
    "docs/manual.md",
    "docs/bases.md",
    "docs/clusters.md",
    "docs/site.md",
    "docs/findings.md",
    "docs/security.md",
    "docs/architecture.md",
    "benchmarks/README.md",
)
TRANSLATED = tuple(page for page in PAGES if page.removesuffix(".md") + ".ja.md" in PAGES)

# Every other command line in a block marked `sh` is really run, page by page, in the order of the page.
NEVER_RUN = {
    "make demo": "changes the machine; tests/real/test_machine.py and test_demo.py run its parts",
    "make check": "is what runs this",
    "make test": "is what runs this",
    "make bench": "takes long, and measures",
    "curl -LsSf https://astral.sh/uv/install.sh | sh": "installs a program from elsewhere; uv is here already",
    "podman build -t image -f Dockerfile .": "another tool, not needed by ctk",
    "podman save --format docker-archive -o image.tar image": "another tool, not needed by ctk",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language and its text."""

    language: str
    text: str


def blocks(page: str, *languages: str) -> list[Block]:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    found = [Block(*match) for match in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    return [block for block in found if block.language in languages]


def command_lines(page: str) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.text.splitlines() if line.strip()]


def inline_code(page: str) -> list[str]:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def for_this_place(place: Path, text: str) -> str:
    """`text` with the paths that a page gives for example led into `place`, or to what this machine has."""
    text = text.replace("/path/to/ca-bundle.pem", "/etc/ssl/certs/ca-certificates.crt")
    return text.replace("/opt/ctk", str(place / "opt")).replace("/path/on/scratch", str(place / "scratch"))
