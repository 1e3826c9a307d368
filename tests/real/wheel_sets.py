"""Makes `tests/data/wheel_sets.json.gz` from the index: `python -m tests.real.wheel_sets`.

Sets and wheels that the file has already are not asked for again. A framework's libraries have to be fetched whole to
read their dynamic sections: tens of gigabytes where all sets are new.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gpu.wheel_sets import REDUCED, ReducedWheel, WheelSet, kept, reduced, wheel_sets, write
from tests.real.wheels import SHARED_LIBRARY, RemoteFile, described, resolve
from toolkit.inventory.knowledge.frameworks import knowledge

KEPT = kept()
PACKAGE = re.compile(r"[A-Za-z_]\w*/__init__\.py")
# Wheels of before 2020 hold their files as `NAME.data/purelib/…`.
DATA_DIRECTORY = re.compile(r"^[^/]+\.data/(purelib|platlib)/")


def record() -> None:
    """Add what is new in `wheel_sets.toml`, and leave out what is no longer there."""
    known, wheels = reduced() if REDUCED.exists() else ({}, {})
    rows = {one.key: one for one in wheel_sets()}
    addresses = {name: one.url for name, one in wheels.items()}
    with ThreadPoolExecutor(6) as pool:
        for key, urls in pool.map(_resolved, [one for key, one in rows.items() if key not in known]):
            known[key] = sorted(map(posixpath.basename, urls))
            addresses |= {posixpath.basename(url): url for url in urls}
        wanted = sorted({name for key in rows for name in known[key]})
        missing = [name for name in wanted if name not in wheels]
        wheels |= dict(zip(missing, pool.map(lambda name: reduce_wheel(addresses[name]), missing), strict=True))
    write({key: known[key] for key in rows}, [(name, wheels[name]) for name in wanted])


def _resolved(one: WheelSet) -> tuple[str, list[str]]:
    """The set's key, and of its wheels those that matter: frameworks, GPU libraries, companions of a framework."""
    wheels = resolve(tuple(one.wheels.split()), one.python, dependencies=one.dependencies)
    direct = {canonicalize_name(Requirement(wheel).name) for wheel in one.wheels.split()}
    names = {url: canonicalize_name(name.split("-")[0]) for name, url in wheels.items()}
    return one.key, [url for url, name in names.items() if name in direct or _matters(name)]


def _matters(name: str) -> bool:
    known = knowledge()
    related = {one for pair in known.pairings for one in (pair.companion, pair.framework)}
    related |= {one for pair in known.incompatibilities for one in (pair.name, pair.other)}
    return known.framework_of(name) is not None or known.is_gpu_library(name) or name in related


def reduce_wheel(url: str) -> ReducedWheel:
    """Fetch the parts of a wheel that are kept."""
    print(posixpath.basename(url), file=sys.stderr)
    found = ReducedWheel(url, {}, {})
    with TemporaryDirectory() as directory, zipfile.ZipFile(BufferedReader(RemoteFile(url), 1 << 20)) as archive:
        for member in archive.namelist():
            path = DATA_DIRECTORY.sub("", member)
            if path.endswith(".dist-info/METADATA"):
                found.texts[path] = archive.read(member).decode(errors="replace").partition("\n\n")[0] + "\n\n"
            elif _any(path, KEPT.texts):
                found.texts[path] = archive.read(member).decode()
            elif PACKAGE.fullmatch(path):
                found.texts[path] = ""
            elif _any(path, KEPT.libraries) and archive.getinfo(member).file_size <= _limit(path):
                found.libraries[path] = described(Path(archive.extract(member, directory)))
            elif SHARED_LIBRARY.search(path):
                found.libraries[path] = None
    return found


def _limit(path: str) -> int:
    """The largest file that is read. What libtorch_cuda.so needs, the small libtorch_global_deps.so needs as well."""
    return 200 << 20 if path.startswith("torch/") else 1 << 40


def _any(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


if __name__ == "__main__":
    record()
