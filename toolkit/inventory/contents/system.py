"""What is below Python in an image: its operating system, glibc, architecture, and the packages of dpkg and conda."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.inventory.contents.model import SystemPackage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.inventory.formats.rootfs import Rootfs

_SMALL = 1 << 20
_DPKG_LIMIT = 64 << 20
# e_machine of ELF to what uname -m says. Source: the ELF specification's registry, linux/elf-em.h.
_MACHINES = {
    3: "i686",
    20: "ppc",
    21: "ppc64le",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
}
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib64/ld64.so.2", "/lib/ld64.so.1")
_PROGRAMS = ("/bin/sh", "/bin/bash", "/usr/bin/env", "/bin/ls", "/bin/busybox")
_LIBRARY_DIRECTORIES = (
    "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib/powerpc64le-linux-gnu", "/lib64", "/usr/lib64", "/lib",
)  # fmt: skip


def read_os(rootfs: Rootfs) -> str:
    """ID and VERSION_ID of os-release, as "ubuntu 22.04"; "" if there is none."""
    text = rootfs.read_text("/etc/os-release", _SMALL) or rootfs.read_text("/usr/lib/os-release", _SMALL) or ""
    pairs = dict(re.findall(r"^([A-Z_]+)=[\"']?([^\"'\n]*)", text, re.MULTILINE))
    return " ".join(pairs[key] for key in ("ID", "VERSION_ID") if pairs.get(key))


def read_architecture(rootfs: Rootfs, programs: tuple[str, ...]) -> str | None:
    """The machine of the first of `programs`, the loader or the shell that exists; "unknown" for a foreign one."""
    for path in (*programs, *_LOADERS, *_PROGRAMS):
        machine = elf_machine(rootfs, path)
        if machine is not None:
            return machine
    return None


def elf_machine(rootfs: Rootfs, path: str) -> str | None:
    """The machine that an ELF file is for, as uname says it; None if there is no ELF file."""
    file = rootfs.open(path)
    if file is None:
        return None
    with file:
        start = file.read(20)
    if len(start) < 20 or start[:4] != b"\x7fELF":
        return None
    return _MACHINES.get(int.from_bytes(start[18:20], "big" if start[5] == 2 else "little"), "unknown")


def read_glibc(rootfs: Rootfs) -> str | None:
    """The version of the image's glibc ("2.36"); None if it has none.

    From the name that libc.so.6 links to (until 2.33), else from `ldd`, which glibc's build fills in, else from the
    banner inside the library.
    """
    paths = [path for path in (f"{directory}/libc.so.6" for directory in _LIBRARY_DIRECTORIES) if rootfs.is_file(path)]
    if not paths:
        return None
    match = re.search(r"/libc-(\d+\.\d+)\.so$", rootfs.resolve(paths[0]) or "")
    if match:
        return match.group(1)
    ldd = rootfs.read_text("/usr/bin/ldd", _SMALL) or ""
    match = re.search(r"\bldd \(.*\) (\d+\.\d+)", ldd)
    if match:
        return match.group(1)
    content = rootfs.read(paths[0]) or b""
    banner = re.search(rb"GNU C Library .{0,80}? version (\d+\.\d+)", content)
    return banner.group(1).decode() if banner else None


def read_dpkg(rootfs: Rootfs) -> list[SystemPackage]:
    """The packages that dpkg calls installed, by name; distroless images keep one file for each."""
    texts = [rootfs.read_text("/var/lib/dpkg/status", _DPKG_LIMIT) or ""]
    directory = "/var/lib/dpkg/status.d"
    texts += [
        rootfs.read_text(f"{directory}/{name}", _SMALL) or "" for name in rootfs.names(directory) if "." not in name
    ]
    found = {package.name: package for text in texts for package in parse_dpkg(text)}
    return [found[name] for name in sorted(found)]


def parse_dpkg(text: str) -> Iterator[SystemPackage]:
    """The installed packages of a dpkg status file; one without a Status (distroless) is installed."""
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Status|Version): *(.*)$", paragraph, re.MULTILINE))
        if "Package" in fields and fields.get("Status", "install ok installed").endswith(" installed"):
            yield SystemPackage(fields["Package"], fields.get("Version", ""))


def read_conda(rootfs: Rootfs, prefix: str) -> list[SystemPackage]:
    """The packages of the conda environment at `prefix`, from the names of its records (NAME-VERSION-BUILD.json)."""
    records = [name.removesuffix(".json") for name in rootfs.names(f"{prefix}/conda-meta") if name.endswith(".json")]
    parts = [record.rsplit("-", 2) for record in records]
    return [
        SystemPackage(name, version, build, prefix)
        for name, version, build in (part for part in parts if len(part) == 3)
    ]
