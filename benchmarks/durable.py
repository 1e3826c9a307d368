"""What it costs that an image is on the disk before it takes the place of the old one, beside `dd conv=fsync`.

`python -m benchmarks.durable` measures it alone and writes its section of RESULTS.md.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.measure import CHECKOUT, variables
from benchmarks.section import Section, Table
from toolkit import __version__
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROUNDS = 5
_SIZES = (0.1, 1.0, 3.0)  # GB
_GIGABYTE = 10**9
_BLOCK = 10**6
_RECIPE = 'base = "base.sif"\n[[files]]\nfrom = "notes.txt"\nto = "/opt/notes.txt"\n'
_NO_SYNC = (
    "import os; os.fsync = lambda _: None; "
    "from toolkit.inventory.formats import sif_edit; sif_edit.start_writing = lambda *_: None; "
)
_CTK = "from toolkit.cli.main import main; main()"
_WORDS = f"""\
A recipe copies one file into a layered image over a base of random bytes; the file is changed, and the image is built
again. `ctk build` copies the base, and returns when the new image is on the disk. *Without fsync* is the same program
with `fsync` and `sync_file_range` taken out, as it was before. `dd` copies the base once more with blocks of 1 MB, with
`conv=fsync` and without. Wall seconds, medians of {_ROUNDS} rounds, in which the four take turns; before each, all that
is not on the disk is synced, and the base is in the page cache. `ctk build` of what has not changed calls no
`fsync`."""


def run() -> Section:
    """Measure each size on the disk of CTK_BENCH_TMP, or of the temporary directory."""
    rows = []
    with TemporaryDirectory(dir=os.environ.get("CTK_BENCH_TMP")) as name:
        for size in _SIZES:
            place = Path(name, f"{size}")
            place.mkdir()
            with variables(CTK_HOME=f"{name}/area"):
                rows.append(_row(place, size))
            subprocess.run(["rm", "-rf", place], check=True)
    columns = ("base", "`ctk build`", "without fsync", "fsync costs", "`dd conv=fsync`", "`dd`", "fsync costs it")
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    words = f"{_WORDS} Load averages of 1, 5 and 15 minutes at the end: {load}, on {os.cpu_count()} cores."
    versions = (f"ctk {__version__}", find_runtime(load_site()).version_text)
    return Section("An image on the disk", words, (Table("Seconds", columns, tuple(rows)),), versions=versions)


def _row(place: Path, size: float) -> tuple[str, ...]:
    base = _base(place, size)
    (place / "defs").mkdir()
    (place / "defs/bench.toml").write_text(_RECIPE.replace("base.sif", str(base)))
    copy = ["dd", f"if={base}", f"of={place}/copy", "bs=1M", "status=none"]
    ways: dict[str, Sequence[str]] = {
        "ctk": [sys.executable, "-c", _CTK, "build", "bench", "--layered"],
        "without": [sys.executable, "-c", _NO_SYNC + _CTK, "build", "bench", "--layered"],
        "dd fsync": [*copy, "conv=fsync"],
        "dd": copy,
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(_ROUNDS + 1):  # the first one is not counted
        for way, command in ways.items():
            (place / "defs/notes.txt").write_text(f"{way} {turn}\n")
            found = _seconds(command, place)
            if turn:
                seconds[way].append(found)
    medians = [statistics.median(seconds[way]) for way in ways]
    print(f"bench: durable over {size} GB measured", file=sys.stderr, flush=True)
    synced, without, dd_synced, dd = medians
    figures = (synced, without, synced - without, dd_synced, dd, dd_synced - dd)
    return (f"{base.stat().st_size / _GIGABYTE:.2f} GB", *(f"{figure:.2f}" for figure in figures))


def _seconds(command: Sequence[str], place: Path) -> float:
    (place / "copy").unlink(missing_ok=True)
    os.sync()
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=place, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, capture_output=True, check=False
    )
    passed = time.perf_counter() - started
    if done.returncode != 0:
        print(done.stderr.decode(errors="replace"), file=sys.stderr)
        done.check_returncode()
    return passed


def _base(place: Path, size: float) -> Path:
    """A SIF of busybox and random bytes, which the runtime does not try to compress."""
    root, base = place / "root", place / "base.sif"
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "root", "opt", "home", "var/tmp"):
        (root / name).mkdir(parents=True)
    subprocess.run(["cp", "/bin/busybox", root / "bin/busybox"], check=True)
    for applet in ("sh", "cat", "chmod", "cp", "ls", "mkdir", "mv", "rm", "sed", "test", "touch", "true"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    with (root / "opt/random").open("wb") as file:
        for _ in range(round(size * _GIGABYTE / _BLOCK)):
            file.write(os.urandom(_BLOCK))
    options = ["--fakeroot", "--mksquashfs-args", "-noI -noD -noF -noX"]
    subprocess.run(["apptainer", "build", *options, base, root], check=True, capture_output=True)
    subprocess.run(["rm", "-rf", root], check=True)
    return base


if __name__ == "__main__":
    from benchmarks.run import replace_section

    section = run()
    print(section.markdown())
    replace_section(section)
