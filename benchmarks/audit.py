"""The time to find out whether an image can use the GPU: `ctk audit` compared with `import torch`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.measure import Times, debian_12, environment_of_ctk, interleaved, kept
from benchmarks.section import Section, Table, Target
from tests.inventory.making import distribution, fill, inventory_of
from tests.real.wheels import Wheelhouse
from toolkit import __version__
from toolkit.inventory.formats.images import open_image
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_TORCH = "torch==2.5.1"
_SITE = "usr/local/lib/python3.11/dist-packages"
_GIGABYTE = 10**9
_WORDS = f"""\
`{_TORCH}` with its nvidia wheels, over Debian 12, as a SIF packed with zstd. `ctk audit` reads the file: it needs no
container program. `import torch` starts the container with `apptainer exec` and does what users do to see whether a
framework works. Whole commands, in turn, 7 rounds after one that warms up; the images are in the page cache.

The second table has the same wheels without their large libraries, filled up with random data to the given size, and,
in the last row, 1,000 more distributions: the time should depend on these, not on the size."""


def run() -> Section:
    """Make the images (kept in the cache; the first time takes minutes), then measure."""
    audit = environment_of_ctk() / "ctk"
    base = debian_12(audit)
    full = torch_base(base)
    runtime = find_runtime(load_site())
    beside = interleaved(
        {
            "ctk audit": [audit, "audit", full],
            "import torch": runtime.exec(full, ["python3", "-c", "import torch"], gpu=False),
        },
        rounds=7,
    )
    sizes = {
        "0.1 GB": kept("audit/size-0.1.sif", lambda image: _pack(image, base, _reduced(0))),
        "1 GB": base_of_1_gb(base),
        "3 GB": kept("audit/size-3.sif", lambda image: _pack(image, base, _reduced(2_900_000_000))),
        "0.1 GB, many distributions": kept("audit/many.sif", lambda image: _pack(image, base, _reduced(0, more=1000))),
    }
    growth = interleaved({name: [audit, "audit", image] for name, image in sizes.items()}, rounds=7)
    memory = _peak_memory([audit, "audit", full])
    median, load = beside["ctk audit"].median, beside["import torch"].median
    flat = growth["3 GB"].fastest / growth["0.1 GB"].fastest
    return Section(
        title="Whether an image can use a GPU",
        words=_WORDS,
        tables=(
            Table(
                f"An image of {full.stat().st_size / _GIGABYTE:.1f} GB",
                ("command", "median, s", "fastest, s", "ctk ÷ this"),
                tuple(
                    (
                        f"`{name}`",
                        f"{distribution.median:.2f}",
                        f"{distribution.fastest:.2f}",
                        f"{median / distribution.median:.3f}",
                    )
                    for name, distribution in beside.items()
                ),
            ),
            Table(
                "What the time grows with",
                ("image", "size, GB", "distributions", "median, s", "fastest, s"),
                _growth(sizes, growth),
            ),
        ),
        targets=(
            Target(f"an audit of at least 3 GB within 0.3 s: {median:.2f} s", median <= 0.3),
            Target(f"within 60 MB of memory: {memory / 10**6:.0f} MB", memory <= 60 * 10**6),
            Target(f"sooner than `import torch`: {load / median:.0f} times", median < load),
            Target(f"3 GB take no more than 1.2 times what 0.1 GB take (fastest runs): {flat:.2f} times", flat <= 1.2),
        ),
        versions=(f"ctk {__version__}", runtime.version_text, _TORCH.replace("==", " ")),
    )


def torch_base(base: Path) -> Path:
    """`base` with all of torch."""
    return kept("audit/torch-full.sif", lambda image: _pack(image, base, _install_whole))


def base_of_1_gb(base: Path) -> Path:
    """`base` with torch without its large libraries, and random data."""
    return kept("audit/size-1.sif", lambda image: _pack(image, base, _reduced(900_000_000)))


def _growth(sizes: dict[str, Path], growth: dict[str, Times]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            name,
            f"{image.stat().st_size / _GIGABYTE:.1f}",
            str(len(inventory_of(image).distributions)),
            f"{growth[name].median:.2f}",
            f"{growth[name].fastest:.2f}",
        )
        for name, image in sizes.items()
    )


def _pack(image: Path, base: Path, install: Callable[[Path], None]) -> None:
    """A SIF of the content of `base` and the files that `install` adds to its root."""
    root, squashed = image.with_suffix(".root"), image.with_suffix(".squashfs")
    shutil.rmtree(root, ignore_errors=True)
    with open_image(base) as opened:
        assert opened.sif is not None
        offset = next(descriptor.offset for descriptor in opened.sif.descriptors if descriptor.partition)
    _quietly("unsquashfs", "-no-progress", "-offset", str(offset), "-dest", root, base)
    install(root)
    _quietly("mksquashfs", root, squashed, "-noappend", "-quiet", "-comp", "zstd", "-Xcompression-level", "3")
    _quietly("apptainer", "sif", "new", image)
    partition = ("--datatype", "4", "--partfs", "1", "--parttype", "2", "--partarch", "2", "--groupid", "1")
    _quietly("apptainer", "sif", "add", *partition, image, squashed)
    shutil.rmtree(root)
    squashed.unlink()


def _install_whole(root: Path) -> None:
    uv = ("uv", "pip", "install", "--quiet", "--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_31")
    _quietly(sys.executable, "-m", *uv, "--only-binary", ":all:", "--target", root / _SITE, _TORCH)


def _reduced(filler: int, *, more: int = 0) -> Callable[[Path], None]:
    """Installs the reduced wheels, `filler` bytes that no compressor shrinks, and `more` small distributions."""

    def install(root: Path) -> None:
        wheels = root.parent / "wheels"
        wheels.mkdir(exist_ok=True)
        Wheelhouse(wheels).install(root / _SITE, _TORCH, dependencies=True)
        for number in range(more):
            fill(root, distribution(f"extra-{number}", "1.0", _SITE, {f"extra_{number}.py": "x = 1\n"}))
        with (root / "opt/filler").open("wb") as file:
            for _ in range(filler // 10**6):
                file.write(os.urandom(10**6))

    return install


def _quietly(*argv: str | Path) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def _peak_memory(argv: Sequence[str | Path]) -> int:
    """The most memory that a command held at once, in bytes."""
    child = subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_maxrss * 1024
