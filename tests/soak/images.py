"""Damaged and hostile images: the audit gives a verdict or one clear error, soon, in little memory, and writes nothing.

`python -m tests.soak.images --seed 1 --count 10000` says what it found; a failure names the seed that repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.inventory.making import Part, distribution, fill, overlay, python_files, squash, system, write_sif
from toolkit.gpu.audit import audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.support.errors import CtkError

if TYPE_CHECKING:
    from collections.abc import Callable

SLOWEST = 5.0  # seconds for one image
LARGEST = 300  # MiB for the process, all images one after the other
_SITE = "usr/local/lib/python3.11/site-packages"
_DESCRIPTOR, _TABLE_AT = 585, 128
_EXTREMES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1, 1 << 40)


@dataclass
class Report:
    """What became of the images: `verdicts` and `errors` by name, and each failure with the seed that repeats it."""

    count: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    memory: int = 0

    def text(self) -> str:
        lines = [f"{self.count} images; slowest {self.slowest:.2f} s; most memory {self.memory} MiB"]
        lines += [f"  {name}: {number}" for name, number in sorted({**self.verdicts, **self.errors}.items())]
        return "\n".join([*lines, *(f"FAILED {failure}" for failure in self.failures)])


def originals(directory: Path) -> list[bytes]:
    """Sound images of every form and compression, with what the audit reads in them."""
    root = fill(directory / "root", {
        **python_files(),
        **distribution("torch", "2.5.1", _SITE, {"torch/version.py": "__version__ = '2.5.1+cu124'\ncuda = '12.4'\n"}),
        **distribution("tensorflow", "2.15.1", _SITE, {
            "tensorflow/__init__.py": "", "tensorflow/python/platform/build_info.py":
            "import c\nbuild_info = c.OrderedDict([('is_cuda_build', True), ('cuda_version', '12.2')])\n",
        }),
        **distribution("tensorflow-cpu", "2.15.1", _SITE, {"tensorflow/__init__.py": ""}),
        **distribution("jaxlib", "0.6.2", _SITE), **distribution("jax", "0.6.2", _SITE),
        f"{_SITE}/torch/lib/libtorch_cuda.so": Path("/bin/sh").resolve().read_bytes(),
        f"{_SITE}/torch/lib/libtorch_python.so": Path("/bin/sh").resolve().read_bytes(),
        f"{_SITE}/nvidia/cudnn/lib/libcudnn.so.9": b"x", "var/lib/dpkg/status": "Package: x\nVersion: 1\n" * 200,
        "etc/ld.so.cache": Path("/etc/ld.so.cache").read_bytes(), "lib": "-> usr/lib", "loop": "-> loop",
        "opt/conda/conda-meta/numpy-1.26-h1_0.json": "{}",
        "usr/lib/x86_64-linux-gnu/libc.so.6": b"GNU C Library version 2.36",
        ".singularity.d/env/90-environment.sh": "export LD_LIBRARY_PATH=/usr/local/cuda/lib64\n",
    })  # fmt: skip
    upper = fill(directory / "upper", {f"{_SITE}/torch/version.py": "cuda = None\n", "opaque/x": "", ".wh.opt": ""})
    os.setxattr(upper / "opaque", "user.overlay.opaque", b"y")
    images = []
    options: list[tuple[str, ...]] = [("-comp", name) for name in ("gzip", "zstd", "xz", "lz4", "lzo")]
    # Nothing compressed: here a flipped bit changes a table instead of spoiling a whole block.
    options += [("-noI", "-noD", "-noF", "-noX", "-noId"), ("-noI", "-noD", "-noF", "-noX", "-b", "4096")]
    layer = squash(upper, directory / "upper.squashfs", "-noI", "-noX").read_bytes()
    for number, option in enumerate(options):
        plain = squash(root, directory / f"{number}.squashfs", *option).read_bytes()
        images.append(plain)
        images.append(write_sif(directory / "flat.sif", [Part(0x4001, b"Bootstrap: x\n"), system(plain)]).read_bytes())
        images.append(write_sif(directory / "layered.sif", [system(plain), overlay(layer)]).read_bytes())
    return images


def damaged(images: list[bytes], generator: random.Random) -> bytes:
    """One of the images, spoiled in one to three ways."""
    image = bytearray(generator.choice(images))
    ways: list[Callable[[bytearray, list[bytes], random.Random], None]] = [
        _flip, _flip, _truncate, _splice, _superblock, _superblock, _descriptor, _table, _zero,
    ]  # fmt: skip
    for way in generator.choices(ways, k=generator.randint(1, 3)):
        way(image, images, generator)
    return bytes(image)


def _start_of_squashfs(image: bytearray, generator: random.Random) -> int:
    starts = [at for at in range(0, len(image), 4096) if image[at : at + 4] == b"hsqs"] or [0]
    return generator.choice(starts)


def _flip(image: bytearray, _: list[bytes], generator: random.Random) -> None:
    for _flip in range(generator.choice((1, 4, 64, 1000))):
        image[generator.randrange(len(image))] ^= 1 << generator.randrange(8)


def _truncate(image: bytearray, _: list[bytes], generator: random.Random) -> None:
    del image[generator.randrange(1, len(image)) :]


def _splice(image: bytearray, images: list[bytes], generator: random.Random) -> None:
    other = generator.choice(images)
    length = generator.choice((16, 96, 585, 4096, 32768))
    at, start = generator.randrange(len(image)), generator.randrange(len(other))
    image[at : at + length] = other[start : start + length]


def _superblock(image: bytearray, _: list[bytes], generator: random.Random) -> None:
    at = _start_of_squashfs(image, generator)
    fields = {
        4: "<I",
        12: "<I",
        16: "<I",
        20: "<H",
        22: "<H",
        24: "<H",
        26: "<H",
        **dict.fromkeys(range(32, 96, 8), "<Q"),
    }
    place = generator.choice(list(fields))
    _put(image, at + place, fields[place], _hostile(image, generator))


def _descriptor(image: bytearray, _: list[bytes], generator: random.Random) -> None:
    places = {0: "<I", 4: "<B", 5: "<I", 17: "<q", 25: "<q", 201: "<I", 205: "<I"}
    place = generator.choice(list(places))
    at = _TABLE_AT + _DESCRIPTOR * generator.randrange(3) + place
    if generator.random() < 0.3:
        at, places, place = generator.choice((72, 80, 88, 96)), {0: "<q"}, 0
    _put(image, at, places[place], _hostile(image, generator))


def _table(image: bytearray, _: list[bytes], generator: random.Random) -> None:
    """Overwrite numbers in the last part of a squashfs, where its inodes, directories, fragments and ids are."""
    start = _start_of_squashfs(image, generator)
    (inodes,) = struct.unpack_from("<Q", bytes(image[start + 64 : start + 72]).ljust(8, b"\0"))
    begin = min(start + inodes, len(image) - 1) if inodes < len(image) else len(image) * 9 // 10
    for _number in range(generator.choice((1, 3, 20))):
        kind = generator.choice(("<B", "<H", "<I", "<Q"))
        _put(image, generator.randrange(begin, len(image)), kind, _hostile(image, generator))


def _zero(image: bytearray, _: list[bytes], generator: random.Random) -> None:
    at, length = generator.randrange(len(image)), generator.choice((8, 512, 8192))
    image[at : at + length] = bytes(len(image[at : at + length]))


def _hostile(image: bytearray, generator: random.Random) -> int:
    return generator.choice((*_EXTREMES, len(image), len(image) - 1, generator.randrange(1 << 20)))


def _put(image: bytearray, at: int, kind: str, value: int) -> None:
    size = struct.calcsize(kind)
    if at + size <= len(image):
        image[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def run(seed: int, count: int) -> Report:
    """Audit `count` damaged images in a process of its own, so that its memory can be measured."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_run, (seed, count))


def _run(seed: int, count: int) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="ctk-soak-") as name:
        directory = Path(name)
        images = originals(directory / "made")
        shutil.rmtree(directory / "made")
        before = _memory()
        written = _watch_writes()
        for number in range(count):
            image = directory / "image"
            image.write_bytes(damaged(images, random.Random(f"{seed}.{number}")))  # noqa: S311
            written.clear()
            _audit(image, f"seed {seed} number {number}", report)
            report.failures += [f"seed {seed} number {number}: wrote {path}" for path in written]
        report.memory = _memory()
        if report.memory > max(LARGEST, before + 50):
            report.failures.append(f"seed {seed}: {report.memory} MiB")
    return report


def _audit(image: Path, which: str, report: Report) -> None:
    report.count += 1
    started = time.monotonic()
    try:
        verdict = audit_image(image, TargetMachine()).verdict.value
        report.verdicts[verdict] = report.verdicts.get(verdict, 0) + 1
    except CtkError as error:
        report.errors[f"error {error.code}"] = report.errors.get(f"error {error.code}", 0) + 1
        if "\n" in error.message or error.exit_status != 2:
            report.failures.append(f"{which}: {error.message!r}")
    except Exception:
        report.failures.append(f"{which}: {traceback.format_exc()}")
    took = time.monotonic() - started
    report.slowest = max(report.slowest, took)
    if took > SLOWEST:
        report.failures.append(f"{which}: {took:.1f} s")


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _watch_writes() -> list[str]:
    """From now on, every path that this process opens for writing, makes or removes."""
    seen: list[str] = []
    changing = {"os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate", "subprocess.Popen"}

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            seen.append(str(arguments[0]))
        elif event in changing:
            seen.append(f"{event} {arguments[0]}")

    sys.addaudithook(hook)
    return seen


def main() -> int:
    """Run from the command line; the exit status is 1 where an image failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    report = run(options.seed, options.count)
    print(report.text())
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
