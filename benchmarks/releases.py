"""The releases of a distribution on the index: versions and the day each came out."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from functools import cache

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from toolkit.pins.uv import index_address

_JSON = "application/vnd.pypi.simple.v1+json"
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, order=True)
class Release:
    """A final release that is not yanked; `day` is that of its first file (`2024-11-15`)."""

    version: Version
    day: str


@cache
def releases(name: str) -> tuple[Release, ...]:
    """All releases of a distribution, the oldest version first."""
    address = f"{index_address().rstrip('/')}/{canonicalize_name(name)}/"
    request = urllib.request.Request(address, headers={"Accept": _JSON})  # noqa: S310
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
        files = json.load(answer)["files"]
    days: dict[Version, str] = {}
    for file in files:
        version = _version(file["filename"])
        if version is not None and not version.is_prerelease and not file.get("yanked"):
            day = str(file.get("upload-time") or "")[:10]
            days[version] = min(day, days.get(version, day))
    return tuple(sorted(Release(version, day) for version, day in days.items()))


def day_of(name: str, version: Version) -> str:
    """The day on which a version came out; "" where the index does not know it."""
    return next((one.day for one in releases(name) if one.version.public == version.public), "")


def next_series(name: str, version: Version) -> str | None:
    """The first series after that of a version, in short: `2` after numpy 1.26, `2.16` after 2.15; None: no newer."""
    later = [one.version for one in releases(name) if one.version.release[:2] > version.release[:2]]
    return short(Version(".".join(map(str, later[0].release[:2])))) if later else None


def short(version: Version) -> str:
    """`22` of 22.0.0."""
    parts = list(version.release)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, parts))


def _version(filename: str) -> Version | None:
    try:
        return parse_wheel_filename(filename)[1] if filename.endswith(".whl") else parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
