"""Which file of a release an image gets: the wheel that its pip prefers, or the source distribution.

Sources: PEP 425, 600 (manylinux_X_Y) and PEP 513, 571, 599 (their older names); pip's NEWS for each release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from packaging.tags import Tag

    from toolkit.pins.bases.target import PythonTarget

# glibc's minor version, the name that wheels for it bore before PEP 600, and the first pip that knew that name.
_NAMES_OF_OLD = {17: ("manylinux2014", "19.3"), 12: ("manylinux2010", "19.0"), 5: ("manylinux1", "8.1")}
_OLDEST_GLIBC = {"x86_64": 5}  # PEP 513 was for x86 only; manylinux2014 is the first for the others
_PEP_600_SINCE = "20.3"
# Until then pip took the newest file first and then complained of its hash; since then it takes the file that fits.
HASHES_CHOOSE_SINCE = "19.2"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a release on the index. `sha256` and `uploaded` are None if the index does not list them."""

    name: str
    url: str
    sha256: str | None
    uploaded: datetime | None = None

    @property
    def is_wheel(self) -> bool:
        return self.name.endswith(".whl")


def supported_tags(target: PythonTarget, pip: str | None = None) -> list[Tag]:
    """The tags that wheels for `target` may bear, best first; for an old `pip` only those that it supports."""
    python = target.python_version
    abi = f"cp{python[0]}{python[1]}{'m' if python < (3, 8) else ''}"
    platforms = list(_platforms(target, Version(pip) if pip else None))
    interpreter = f"cp{python[0]}{python[1]}"
    return [*cpython_tags(python, [abi], platforms), *compatible_tags(python, interpreter, platforms)]


def _platforms(target: PythonTarget, pip: Version | None) -> Iterator[str]:
    machine = target.architecture
    major, newest = target.assumed_glibc
    for minor in range(newest, _OLDEST_GLIBC.get(machine, 17) - 1, -1):
        if pip is None or pip >= Version(_PEP_600_SINCE):
            yield f"manylinux_{major}_{minor}_{machine}"
        if minor in _NAMES_OF_OLD:
            name, since = _NAMES_OF_OLD[minor]
            if pip is None or pip >= Version(since):
                yield f"{name}_{machine}"
    yield f"linux_{machine}"


def choose_file(files: Iterable[File], tags: Iterable[Tag]) -> File | None:
    """The wheel with the best of `tags`, else the source distribution, else None."""
    rank = {tag: number for number, tag in enumerate(tags)}
    best: tuple[int, str, File] | None = None
    source = None
    for file in files:
        if not file.is_wheel:
            source = source or file
            continue
        try:
            found = [rank[tag] for tag in parse_wheel_filename(file.name)[3] if tag in rank]
        except InvalidWheelFilename:
            continue
        if found and (best is None or (min(found), file.name) < best[:2]):
            best = (min(found), file.name, file)
    return best[2] if best else source


def is_compiled(file: File) -> bool:
    """Whether it is a wheel with extension modules of Python: its ABI tag is not `none`."""
    try:
        tags = parse_wheel_filename(file.name)[3] if file.is_wheel else ()
    except InvalidWheelFilename:
        return False
    return any(tag.abi != "none" for tag in tags)


def serves_architecture(wheel: str, architecture: str) -> bool:
    """Whether a wheel of this name installs on an architecture; one whose name pip cannot parse is left to pip."""
    try:
        platforms = {tag.platform for tag in parse_wheel_filename(wheel)[3]}
    except InvalidWheelFilename:
        return True
    return any(platform == "any" or platform.endswith(f"_{architecture}") for platform in platforms)


def uv_platform(target: PythonTarget) -> str:
    """The greatest of uv's names of platforms that is not newer than the image.

    uv 0.13 knows glibc 2.17, 2.28 and 2.31 to 2.40, tried one by one.
    """
    known = [(2, 17), (2, 28), *((2, minor) for minor in range(31, 41))]
    major, minor = max(pair for pair in known if pair <= max(target.assumed_glibc, known[0]))
    return f"{target.architecture}-manylinux_{major}_{minor}"
