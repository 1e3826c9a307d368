"""Every installed distribution of a site directory: dist-info, egg-info (directory and file) and eggs.

Sources: PyPA's core metadata and recording specifications; setuptools' documentation of `requires.txt`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.inventory.contents.model import Distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.inventory.formats.rootfs import Rootfs

_MAX = 20_000  # distributions of one directory
_HEADERS = 64 << 10  # where the headers end the description begins, and that can be long
_MAX_HEADERS = 1 << 20
_DIRECTORY_NAME = re.compile(r"^(?P<name>.+?)-(?P<version>[^-]+?)(?:-py\d[^-]*(?:-.+)?)?$")
_FIELD = re.compile(r"^([A-Za-z][A-Za-z-]*):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def read_distributions(rootfs: Rootfs, directory: str) -> Iterator[Distribution]:
    """The distributions in one site directory."""
    for name in rootfs.names(directory)[:_MAX]:
        path = f"{directory}/{name}"
        if name.endswith(".dist-info"):
            yield _distribution(rootfs, directory, path, "METADATA")
        elif name.endswith(".egg-info"):
            yield _distribution(rootfs, directory, path, "PKG-INFO" if rootfs.is_directory(path) else None)
        elif name.endswith(".egg") and rootfs.is_directory(f"{path}/EGG-INFO"):
            yield _distribution(rootfs, directory, f"{path}/EGG-INFO", "PKG-INFO")
        elif name.endswith(".egg-link"):
            target = (rootfs.read_text(path, 1 << 16) or "").partition("\n")[0].strip()
            information = f"{target}/{name.removesuffix('.egg-link').replace('-', '_')}.egg-info"
            if target.startswith("/") and rootfs.is_directory(information):
                yield _distribution(rootfs, directory, information, "PKG-INFO")


def _distribution(rootfs: Rootfs, directory: str, path: str, headers_in: str | None) -> Distribution:
    fields = parse_headers(_read_headers(rootfs, f"{path}/{headers_in}" if headers_in else path))
    name, version = _from_directory_name(path)
    requires = fields.get("requires-dist", [])
    extras = fields.get("provides-extra", [])
    if not requires and headers_in == "PKG-INFO":
        requires, extras = parse_requires_txt(rootfs.read_text(f"{path}/requires.txt", _MAX_HEADERS) or "")
    return Distribution(
        name=canonicalize_name(_clean(fields.get("name", [name])[0])),
        version=_clean(fields.get("version", [version])[0]),
        directory=directory,
        metadata=path,
        requires=tuple(map(_clean, requires)),
        extras=tuple(map(_clean, extras)),
        requires_python=_clean(fields["requires-python"][0]) if "requires-python" in fields else None,
        installer=_clean((rootfs.read_text(f"{path}/INSTALLER", 4096) or "").strip()) or None,
        direct_url=_direct_url(rootfs.read_text(f"{path}/direct_url.json", _MAX_HEADERS)),
        has_record=rootfs.is_file(f"{path}/RECORD"),
    )


def _read_headers(rootfs: Rootfs, path: str) -> str:
    file = rootfs.open(path)
    if file is None:
        return ""
    with file:
        content = file.read(_HEADERS)
        while b"\n\n" not in content.replace(b"\r", b"") and len(content) < _MAX_HEADERS:
            more = file.read(_HEADERS)
            if not more:
                break
            content += more
    return content.decode(errors="replace")


def parse_headers(text: str) -> dict[str, list[str]]:
    """The header fields of a METADATA or PKG-INFO by lower-case name; the description is left out."""
    head = text.replace("\r\n", "\n").partition("\n\n")[0]
    fields: dict[str, list[str]] = {}
    for name, value in _FIELD.findall(head):
        fields.setdefault(name.lower(), []).append(value.strip())
    return fields


def parse_requires_txt(text: str) -> tuple[list[str], list[str]]:
    """An egg-info's `requires.txt` as Requires-Dist would say it, and the extras that it names."""
    requires: list[str] = []
    extras: list[str] = []
    extra, marker = "", ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
            if extra and extra not in extras:
                extras.append(extra)
        elif line:
            conditions = [
                part for part in (f"({marker})" if marker else "", f'extra == "{extra}"' if extra else "") if part
            ]
            requires.append(f"{line}; {' and '.join(conditions)}" if conditions else line)
    return requires, extras


def _from_directory_name(path: str) -> tuple[str, str]:
    """Name and version as the directory's name says them, for metadata that is missing or damaged."""
    parts = path.split("/")
    stem = parts[-2] if parts[-1] == "EGG-INFO" else parts[-1]
    stem = re.sub(r"\.(dist-info|egg-info|egg)$", "", stem)
    match = _DIRECTORY_NAME.match(stem)
    return (match["name"], match["version"]) if match else (stem, "")


def _direct_url(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        url = json.loads(text).get("url")
    except (ValueError, AttributeError, RecursionError):
        return None
    return _clean(url) if isinstance(url, str) else None


def _clean(value: str) -> str:
    """On one line and without control characters: text from an image is printed on terminals and written to TOML."""
    return _CONTROL.sub(" ", value).strip()
