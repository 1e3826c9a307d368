"""Real wheels of the index, reduced to the files that the audit reads: megabytes instead of gigabytes.

`uv pip compile` says which wheels an installation takes and where they are. Of each wheel only the wanted members are
fetched, by HTTP range requests into its zip file. What is left of a wheel:

- its `.dist-info`, whole: METADATA, RECORD, entry points;
- the texts in which a framework describes its build (`KEPT`), byte for byte;
- a shared library that the audit opens, as an ELF file of a few hundred bytes with the same DT_NEEDED, the same
  search path and the same list of GPU architectures (`tests/data/elf.json`, which `python -m tests.real.wheels` makes
  anew from the full wheels);
- every other shared library as an empty file of its name.
"""

from __future__ import annotations

import fnmatch
import io
import json
import posixpath
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from toolkit.inventory.formats.elf import read_architectures
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.sandbox import Sandbox

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

RECORDED = Path(__file__).resolve().parents[1] / "data" / "elf.json"
KEPT = (
    "*.dist-info/*", "torch/version.py", "tensorflow*/__init__.py", "tensorflow*/python/platform/build_info.py",
    "tensorflow*/include/*cuda_config.h", "jax_plugins/*/__init__.py", "cupy/.data/_wheel.json", "cupy/_version.py",
    "cupy/__init__.py", "torch/__init__.py", "jax/version.py", "onnxruntime/__init__.py",
    "onnxruntime/capi/build_and_package_info.py",
)  # fmt: skip
SHARED_LIBRARY = re.compile(r"\.so(\.[0-9.]+)?$")
# Whose ELF files the audit opens, and of which wheels.
OPENED = (
    "nvidia/*/lib/lib*.so.*", "torch/lib/lib*.so*", "tensorflow*/libtensorflow_cc.so.2",
    "tensorflow*/libtensorflow_framework.so.2",
    "tensorflow*/python/_pywrap_tensorflow_internal.so", "jax_plugins/*/xla_cuda_plugin.so",
    "cupy_backends/cuda/libs/*.so", "onnxruntime/capi/libonnxruntime_providers_cuda.so",
)  # fmt: skip
RECORDED_WHEELS = (
    ("3.11", "torch==2.5.1"), ("3.11", "torch==2.11.0"), ("3.11", "tensorflow==2.15.1"), ("3.11", "tensorflow==2.18.1"),
    ("3.11", "tensorflow-cpu==2.15.1"), ("3.7", "tensorflow-gpu==2.1.0"), ("3.7", "tensorflow==2.4.1"),
    ("3.11", "jax-cuda12-pjrt==0.6.2"), ("3.11", "cupy-cuda12x==13.6.0"), ("3.11", "cupy-cuda11x==13.6.0"),
    ("3.11", "onnxruntime-gpu==1.22.0"), ("3.11", "tensorflow==2.16.1"), ("3.11", "torch==2.9.1"),
)  # fmt: skip
# With all that they require: what NVIDIA's libraries need of one another.
RECORDED_SETS = (("3.11", "torch==2.5.1"), ("3.11", "tensorflow[and-cuda]==2.16.1"))


class RemoteFile(io.RawIOBase):
    """A file on a server, read in ranges; as a whole, once, from a server that knows no ranges."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._position = 0
        self._whole: bytes | None = None
        content, total = self._fetch("bytes=-65536")
        self._size = total
        self._tail = (total - len(content), content)

    def _fetch(self, wanted: str) -> tuple[bytes, int]:
        for attempt in range(4):
            try:
                request = urllib.request.Request(self._url, headers={"Range": wanted})  # noqa: S310
                with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                    content = answer.read()
                    if answer.status != 206:
                        self._whole = content
                        return content, len(content)
                    return content, int(answer.headers["Content-Range"].rpartition("/")[2])
            except OSError:
                if attempt == 3:
                    raise
                time.sleep(2**attempt)
        raise AssertionError

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        start, tail = self._tail
        if self._whole is not None:
            content = self._whole[self._position : end]
        elif self._position >= start:
            content = tail[self._position - start : end - start]
        else:
            content, _ = self._fetch(f"bytes={self._position}-{end - 1}")
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)


def resolve(
    requirements: tuple[str, ...], python: str, *, dependencies: bool, machine: str = "x86_64"
) -> dict[str, str]:
    """Wheel file name to address, for what an installation of `requirements` takes."""
    with tempfile.TemporaryDirectory() as directory:
        wanted, lock = Path(directory, "wanted.in"), Path(directory, "pylock.toml")
        wanted.write_text("\n".join(requirements))
        command = [
            sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--format", "pylock.toml", "-o", str(lock),
            "--python-version", python, "--python-platform", f"{machine}-manylinux_2_31", "--only-binary", ":all:",
            *(() if dependencies else ("--no-deps",)), str(wanted),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        packages = tomllib.loads(lock.read_text())["packages"]
    urls = [package["wheels"][0]["url"] for package in packages]
    return {posixpath.basename(url): url for url in urls}


class Wheelhouse:
    """Reduced wheels, each fetched once, and their installation into directories."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._recorded: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())

    def install(
        self, site: Path, *requirements: str, python: str = "3.11", dependencies: bool = False, machine: str = "x86_64"
    ) -> None:
        """Put the reduced wheels into the site directory as pip would.

        A later wheel overwrites files of an earlier one; another version of the same distribution is taken away first.
        """
        wheels = resolve(requirements, python, dependencies=dependencies, machine=machine)
        with ThreadPoolExecutor(8) as pool:
            directories = list(pool.map(self._reduced, wheels.items()))
        for directory in directories:
            for older in site.glob(f"{directory.name.partition('-')[0]}-*.dist-info"):
                shutil.rmtree(older)
            for path in sorted(directory.rglob("*")):
                target = site / path.relative_to(directory)
                if path.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                else:
                    target.unlink(missing_ok=True)
                    target.hardlink_to(path)

    def _reduced(self, wheel: tuple[str, str]) -> Path:
        name, url = wheel
        directory = self._directory / name
        if not directory.exists():
            making = self._directory / f"{name}.part"
            recorded = self._recorded.get("-".join(name.split("-")[:2]), {})
            with zipfile.ZipFile(io.BufferedReader(RemoteFile(url), 1 << 18)) as archive:
                for member in archive.namelist():
                    content = _reduced_member(archive, member, recorded)
                    if content is not None:
                        (making / member).parent.mkdir(parents=True, exist_ok=True)
                        (making / member).write_bytes(content)
            (next(making.glob("*.dist-info")) / "INSTALLER").write_text("pip\n")
            making.rename(directory)
        return directory


def _reduced_member(archive: zipfile.ZipFile, member: str, recorded: dict[str, Any]) -> bytes | None:
    if member.endswith("/"):
        return None
    if any(fnmatch.fnmatchcase(member, pattern) for pattern in KEPT):
        return archive.read(member)
    if member in recorded:
        return elf(**recorded[member])
    return b"not looked into" if SHARED_LIBRARY.search(member) else None


def elf(
    needed: list[str],
    search: str,
    run_path: bool,
    architectures: str,
    soname: str = "",
    symbols: str = "",
    compiled: str = "",
) -> bytes:
    """A 64-bit ELF file with this dynamic section, these names of symbols and, in `.rodata`, these architectures.

    `compiled` are the architectures of the code in its `.nv_fatbin`.
    """
    texts = b"\0" + b"".join(symbol.encode() + b"\0" for symbol in symbols.split())
    entries: list[tuple[int, int]] = []
    for tag, text in [*((1, name) for name in needed), *([(29 if run_path else 15, search)] if search else []),
                      *([(14, soname)] if soname else [])]:  # fmt: skip
        entries.append((tag, len(texts)))
        texts += text.encode() + b"\0"
    names = b"\0.rodata\0.shstrtab\0.nv_fatbin\0"
    data = architectures.encode() + b"\0"
    code = fat_binary(compiled.split())
    at_texts = 64 + 2 * 56
    at_data = at_texts + len(texts)
    at_names = at_data + len(data)
    at_code = at_names + len(names)
    at_dynamic = at_code + len(code)
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in [*entries, (5, at_texts), (10, len(texts)), (0, 0)])
    at_sections = at_dynamic + len(dynamic)
    whole = at_sections + 4 * 64
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, at_sections, 0, 64, 56, 2, 64, 4, 2
    )
    segments = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, whole, whole, 4096)
    segments += struct.pack("<IIQQQQQQ", 2, 6, at_dynamic, at_dynamic, at_dynamic, len(dynamic), len(dynamic), 8)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 2, at_data, at_data, len(data), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 9, 3, 0, 0, at_names, len(names), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 19, 1, 2, at_code, at_code, len(code), 0, 0, 1, 0)
    return header + segments + texts + data + names + code + dynamic + sections


def fat_binary(architectures: list[str]) -> bytes:
    """What nvcc puts into `.nv_fatbin`: an entry with some code for each architecture."""
    kinds = {"compute": 1, "sm": 2}
    entries = b"".join(
        struct.pack("<HHIQ12xI32x8x", kinds[kind], 0x101, 64, 8, int(number))
        for kind, _, number in (one.partition("_") for one in architectures)
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries if entries else b""


def record() -> None:
    """Read the ELF files of the full wheels (several gigabytes) and write what the reduced ones repeat of them."""
    found: dict[str, dict[str, Any]] = {}
    sets = [(*one, False) for one in RECORDED_WHEELS] + [(*one, True) for one in RECORDED_SETS]
    for python, requirement, dependencies in sets:
        for name, url in resolve((requirement,), python, dependencies=dependencies).items():
            if dependencies and not name.startswith("nvidia_"):
                continue
            print(name, file=sys.stderr)
            with (
                tempfile.TemporaryDirectory() as directory,
                zipfile.ZipFile(io.BufferedReader(RemoteFile(url), 8 << 20)) as archive,
            ):
                members = [one for one in archive.namelist() if any(fnmatch.fnmatchcase(one, path) for path in OPENED)]
                found["-".join(name.split("-")[:2])] = {
                    member: described(Path(archive.extract(member, directory))) for member in sorted(members)
                }
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def described(library: Path) -> dict[str, Any]:
    """The parts of an ELF file that `elf` repeats, read with pyelftools, which the audit does not use."""
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as file:
        image = ELFFile(file)
        tags = list(image.get_section_by_name(".dynamic").iter_tags())
        kinds = {tag.entry.d_tag: getattr(tag, "rpath", None) or getattr(tag, "runpath", None) for tag in tags}
        data = image.get_section_by_name(".rodata").data() if library.name == "libtorch_python.so" else b""
        names = image.get_section_by_name(".dynstr").data() if "nvidia" in library.parts else b""
    architectures = max(re.findall(rb"sm_\d+(?: (?:sm|compute)_\d+)+", data), key=len, default=b"").decode()
    return {
        "needed": [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"],
        "search": kinds.get("DT_RUNPATH") or kinds.get("DT_RPATH") or "",
        "run_path": "DT_RUNPATH" in kinds,
        "architectures": architectures,
        "soname": next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""),
        "symbols": " ".join(sorted({one.decode() for one in re.findall(rb"__nvJitLink\w+_\d+_\d+", names)})),
        "compiled": compiled_for(library),
    }


def compiled_for(library: Path) -> str:
    """The GPU architectures of a library's code."""
    rootfs = Rootfs(Sandbox(library.parent), str(library.parent), "sandbox")
    return " ".join(read_architectures(rootfs, f"/{library.name}"))


if __name__ == "__main__":
    record()
