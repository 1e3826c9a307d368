"""A package index on this machine with wheels of a few hundred bytes: what uv and ctk ask it is real."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from http.server import SimpleHTTPRequestHandler
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from tests.real.company import file_server, make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


class Open(SimpleHTTPRequestHandler):
    """Files for everybody."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


@contextmanager
def serve_index(directory: Path, packages: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """The address of an index of `packages`: by name and version what each requires. Its pages are lists of files."""
    for name, versions in packages.items():
        module = name.replace("-", "_")
        for version, requires in versions.items():
            make_wheel(directory, module, version, *requires)
        if module != name:
            (directory / "simple" / name).symlink_to(module)
    with file_server(directory, Open) as address:
        yield f"{address}/simple"


@dataclass(frozen=True)
class Listed:
    """A file of an index as its page shows it, and what the release requires."""

    file: str
    requires: tuple[str, ...] = ()
    python: str = ""
    yanked: bool = False


@contextmanager
def serve_pages(directory: Path, files: Iterable[Listed]) -> Iterator[str]:
    """The address of an index whose pages tell Requires-Python and what is yanked, as PyPI's do."""
    pages: dict[str, list[str]] = {}
    for listed in files:
        parse = parse_wheel_filename if listed.file.endswith(".whl") else parse_sdist_filename
        name, version = parse(listed.file)[:2]
        folder = directory / "simple" / canonicalize_name(name)
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {line}" for line in listed.requires]
        lines += [f"Requires-Python: {listed.python}"] if listed.python else []
        _write(folder / listed.file, name, str(version), "\n".join(lines) + "\n")
        said = f' data-requires-python="{escape(listed.python)}"' if listed.python else ""
        said += ' data-yanked=""' if listed.yanked else ""
        sha256 = hashlib.sha256((folder / listed.file).read_bytes()).hexdigest()
        pages.setdefault(folder.name, []).append(f'<a href="{listed.file}#sha256={sha256}"{said}>{listed.file}</a>')
    for name, links in pages.items():
        (directory / "simple" / name / "index.html").write_text("\n".join(links))
    with file_server(directory, Open) as address:
        yield f"{address}/simple"


def _write(path: Path, name: str, version: str, metadata: str) -> None:
    if path.suffix != ".whl":
        with tarfile.open(path, "w:gz") as archive:
            for file, text in (("PKG-INFO", metadata), ("setup.py", "from setuptools import setup\nsetup()\n")):
                member = tarfile.TarInfo(f"{name}-{version}/{file}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        return
    information = f"{name.replace('-', '_')}-{version}.dist-info"
    tags = "-".join(path.stem.split("-")[-3:])
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{information}/METADATA", metadata)
        wheel.writestr(f"{information}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n")
        wheel.writestr(f"{information}/RECORD", "")
