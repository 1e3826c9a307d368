"""Makes `tests/data/torch_wheels.json.gz`: every wheel of PyTorch for Linux since 1.13.

`python -m tests.real.torch_wheels` runs it.

Of each wheel it keeps torch/version.py, and the bytes of `.rodata` around the list that `_cuda_getArchFlags()` returns.
Of one wheel of each release and machine it also reads all code for GPUs: the architectures that most of torch's own
compilations were made for. Wheels that the file has already are not read again.
"""

from __future__ import annotations

import gzip
import json
import mmap
import posixpath
import re
import struct
import sys
import urllib.request
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from tests.real.wheels import RemoteFile
from toolkit.inventory.formats.elf import read_only_data
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.sandbox import Sandbox
from toolkit.pins.index.pages import ACCEPT, read_page
from toolkit.pins.index.uv import index_address

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED = Path(__file__).resolve().parents[1] / "data" / "torch_wheels.json.gz"
_OLDEST = Version("1.13")
_PYTHON = "cp311"  # of the wheels whose code is read
_FLAGS = re.compile(rb"(?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)*")
_BEFORE, _AFTER = 64, 32
_FAT_BINARY = struct.pack("<IHH", 0xBA55ED50, 1, 16)
_KINDS = {1: "compute", 2: "sm"}


def record() -> None:
    """Read what is new on the index."""
    content = recorded()
    addresses = {row["filename"]: row["url"] for row in _listed()}
    with ThreadPoolExecutor(3) as pool:
        new = sorted(addresses.keys() - content["wheels"].keys())
        for name, found in pool.map(lambda name: (name, _texts(addresses[name])), new):
            content["wheels"][name] = found
            print(name, file=sys.stderr)
    with_gpu = [name for name, one in content["wheels"].items() if one["data"] and f"-{_PYTHON}-{_PYTHON}-" in name]
    for name in with_gpu:
        if key_of(name) not in content["code"]:
            content["code"][key_of(name)] = _code(addresses[name])
            print(key_of(name), content["code"][key_of(name)], file=sys.stderr)
    RECORDED.write_bytes(gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0))


def recorded() -> dict[str, dict[str, Any]]:
    """`wheels` by file name, and by release and machine the architectures of the `code`."""
    if not RECORDED.exists():
        return {"wheels": {}, "code": {}}
    content: dict[str, dict[str, Any]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return content


def _listed() -> list[dict[str, Any]]:
    request = urllib.request.Request(f"{index_address()}/torch/", headers={"Accept": ACCEPT})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        rows = read_page(answer.read().decode(), request.full_url)
    wheels = [row for row in rows if row["filename"].endswith(".whl") and "linux" in row["filename"]]
    return [row for row in wheels if parse_wheel_filename(row["filename"])[1] >= _OLDEST]


def key_of(name: str) -> str:
    """The release and the machine of a wheel: "2.9.1 x86_64"."""
    return f"{parse_wheel_filename(name)[1]} {'x86_64' if 'x86_64' in name else 'aarch64'}"


def _texts(url: str) -> dict[str, str]:
    with zipfile.ZipFile(BufferedReader(RemoteFile(url), 1 << 20)) as archive, TemporaryDirectory() as directory:
        library = Path(archive.extract("torch/lib/libtorch_python.so", directory))
        data = read_only_data(Rootfs(Sandbox(library.parent), directory, "sandbox"), f"/{library.name}")
        place = max(_FLAGS.finditer(data), key=lambda found: len(found[0]), default=None)
        around = data[max(0, place.start() - _BEFORE) : place.end() + _AFTER] if place else b""
        version = archive.read("torch/version.py").decode()
    return {"version": version, "data": around.decode("latin-1")}


def _code(url: str) -> str:
    """The architectures of most of torch's compilations: those of NCCL, cuDNN and others in it differ."""
    found: Counter[str] = Counter()
    with zipfile.ZipFile(BufferedReader(RemoteFile(url), 8 << 20)) as archive, TemporaryDirectory() as directory:
        for member in archive.namelist():
            if posixpath.basename(member) in ("libtorch_cuda.so", "libtorch_cuda_cu.so"):
                found.update(_fat_binaries(Path(archive.extract(member, directory))))
    return found.most_common(1)[0][0]


def _fat_binaries(library: Path) -> Iterator[str]:
    """The architectures of each fat binary of a library."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_FAT_BINARY)
        while at >= 0:
            entry, end = at + 16, at + 16 + struct.unpack_from("<8xQ", content, at)[0]
            if end > len(content):
                return
            names = []
            while entry < end:
                kind, header, size, architecture = struct.unpack_from("<H2xIQ12xI", content, entry)
                names.append(f"{_KINDS.get(kind, kind)}_{architecture}")
                entry += header + size
            yield " ".join(dict.fromkeys(names))
            at = content.find(_FAT_BINARY, max(end, at + 16))


if __name__ == "__main__":
    record()
