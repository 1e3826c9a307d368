"""One change to an image: `ctk build`, layered and flat, with plain `apptainer build` of the same definition."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.audit import base_of_1_gb, torch_base
from benchmarks.measure import debian_12, environment_of_ctk, interleaved, variables
from benchmarks.section import Section, Table, Target
from toolkit import __version__
from toolkit.inventory.formats.layers import is_layer_name
from toolkit.inventory.formats.sif import DataType, read_sif
from toolkit.inventory.formats.sif_edit import extract
from toolkit.pins.guard.over_layers import GuardedLayers, judge_layers
from toolkit.pins.lock.lockfile import load_lock
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROUNDS = 3
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_GIGABYTE = 10**9
_PACKAGES = 'base = "{base}"\npackages = [{packages}]\n'
_INCOMPLETE = '[imports]\nskip = ["torch"]\n'  # of the base of 1 GB, which has only parts of torch
_FILES = 'base = "{base}"\n[[files]]\nfrom = "notes.txt"\nto = "/opt/notes.txt"\n'
_WORDS = f"""\
A recipe over a base of this machine is built, then one thing is changed and it is built again: (a) adds a small
package, (b) changes the version of one, (c) changes the file of a recipe without packages; these are layered. (d) is
(a) with `--flat`. By hand: `apptainer build --fakeroot` of the text that `ctk def` prints, with the same guard and
imports in it, one run each, since it takes minutes. ctk's figures are medians of {_ROUNDS} runs, each with another
change, so that the store has no layer of it; they include the choice of versions, the guard, the imports and the audit.
In (a) and (b), the framework of the base was imported by the build before the change. The bases are in the page cache,
and the package files in the store from the smallest base on. Before each run, all that earlier ones wrote is synced.

*Guard* is the time in which the layers are judged, measured again on the image that was built.
*Read* and *written* are the bytes of system calls of the command's processes, in multiples of the base's file; what
squashfuse reads for the container is not in them. *Memory* is the largest resident set of one process. The base of
3 GB holds torch, which the build imports; that of 1 GB is filled up with random data."""


@dataclass(frozen=True, slots=True)
class Run:
    """One command: wall seconds, the largest process in bytes, bytes read and written."""

    seconds: float
    memory: int
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class Case:
    """A change: its letter and name, the recipe before it, each form of the change, and the options of `ctk build`.

    `target` is the least ratio on 3 GB.
    """

    name: str
    before: str
    changes: tuple[str, ...]
    options: tuple[str, ...] = ("--layered",)
    target: float | None = None

    @property
    def has_packages(self) -> bool:
        return not self.before.isalpha()

    @property
    def guarded(self) -> bool:
        """Whether the guard judges layers: it has a lock only where packages are installed."""
        return self.has_packages and "--layered" in self.options


_VERSIONS = ("0.9.0", "0.8.10", "0.8.9")
_ADDED = tuple(f'"six", "tabulate=={version}"' for version in _VERSIONS)
CASES = (
    Case("(a) a package added", '"six"', _ADDED, target=40),
    Case("(b) a version changed", '"tabulate==0.8.8"', tuple(f'"tabulate=={version}"' for version in _VERSIONS)),
    Case("(c) a file changed", "zero", ("one", "two", "three"), target=60),
    Case("(d) all anew, flat", '"six"', _ADDED, ("--flat",), 5),
)


def run() -> Section:
    """Make the bases (kept in the cache), then measure each case on each."""
    ctk = environment_of_ctk() / "ctk"
    if CA_BUNDLE.is_file():  # plain apptainer needs the certificates of this machine; ctk finds them
        os.environ["APPTAINER_BIND"] = f"{CA_BUNDLE}"
    debian = debian_12(ctk)
    bases = {"0.1 GB": debian, "1 GB": base_of_1_gb(debian), "3 GB": torch_base(debian)}
    tables, targets = [], []
    with TemporaryDirectory(dir=os.environ.get("CTK_BENCH_TMP")) as name, variables(CTK_HOME=f"{name}/area"):
        for size, base in bases.items():
            rows = _measure(base, ctk, Path(name) / f"over-{base.name}")
            print(f"bench: layers over {size} measured", file=sys.stderr, flush=True)
            tables.append(_table(f"A base of {size} ({base.stat().st_size / _GIGABYTE:.2f} GB)", base, rows))
            if size == "3 GB":
                targets += [_target(row) for row in rows if row.case.target is not None]
                targets += [_reads(row, base) for row in rows if "--layered" in row.case.options]
        tables.append(_growth(ctk, bases["3 GB"], Path(name) / "growth"))
        tables.append(_starts(ctk, debian, Path(name)))
        tables.append(_reflinks(ctk, bases["3 GB"], Path(name)))
        targets.append(_imports(ctk, bases["3 GB"], Path(name)))
    return Section(
        "Layered images",
        _WORDS,
        tuple(tables),
        tuple(targets),
        (f"ctk {__version__}", find_runtime(load_site()).version_text),
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A measured case: ctk's runs and that by hand, the image's sizes in bytes, the guard's seconds."""

    case: Case
    runs: tuple[Run, ...]
    by_hand: Run
    size: int
    size_by_hand: int
    guard: float | None

    @property
    def seconds(self) -> float:
        return _median(self.runs)

    @property
    def ratio(self) -> float:
        return self.by_hand.seconds / self.seconds


def _measure(base: Path, ctk: Path, work: Path) -> list[Row]:
    rows: list[Row] = []
    for case in CASES:
        runs = _runs(case, base, ctk, work)
        # (d) is the same definition as (a)
        same = next(((row.by_hand, row.size_by_hand) for row in rows if row.case.changes == case.changes), None)
        by_hand, size_by_hand = same or _by_hand(ctk, work)
        guard = _guard(base, work) if case.guarded else None
        rows.append(Row(case, runs, by_hand, (work / "bench.sif").stat().st_size, size_by_hand, guard))
    return rows


def _by_hand(ctk: Path, work: Path) -> tuple[Run, int]:
    """The build by hand, and the size of its image in bytes."""
    text = subprocess.run([ctk, "def", "bench"], cwd=work, check=True, capture_output=True, text=True).stdout
    (work / "hand.def").write_text(text)
    run = measured(["apptainer", "build", "--force", "--fakeroot", "hand.sif", "hand.def"], work)
    return run, (work / "hand.sif").stat().st_size


def _guard(base: Path, work: Path) -> float:
    """Seconds in which the guard judges the layers of packages and of the rest."""
    lock = load_lock(work / "defs/bench.lock.toml", platform.machine())
    assert lock is not None
    image = read_sif(work / "bench.sif")
    found = [layer for layer in image.of_type(DataType.PARTITION) if is_layer_name(layer.name)]
    with TemporaryDirectory(dir=work) as directory:
        files = [Path(directory) / layer.name for layer in found]
        for layer, file in zip(found, files, strict=True):
            extract(image, layer, file)
        started = time.perf_counter()
        judgement = judge_layers(lock, base, GuardedLayers(packages=(files[0],), tail=(files[1],)))
        passed = time.perf_counter() - started
    assert judgement.passed
    return passed


def _runs(case: Case, base: Path, ctk: Path, work: Path) -> tuple[Run, ...]:
    """The runs in which the change was built; the last one is of its first form, which is built by hand, too."""
    (work / "defs").mkdir(parents=True, exist_ok=True)
    write = _write_packages if case.has_packages else _write_files
    build: list[str | Path] = [ctk, "build", "bench", "-o", "bench.sif", *case.options]
    runs = []
    for change in case.changes[::-1]:
        if "--layered" in case.options:
            write(work, base, case.before)
            measured(build, work)
        write(work, base, change)
        runs.append(measured(build, work))
    return tuple(runs)


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def _write_packages(work: Path, base: Path, packages: str) -> None:
    text = _PACKAGES.format(base=base, packages=packages)
    (work / "defs/bench.toml").write_text(text + (_INCOMPLETE if base.name == "size-1.sif" else ""))


def _write_files(work: Path, base: Path, content: str) -> None:
    (work / "defs/bench.toml").write_text(_FILES.format(base=base))
    (work / "defs/notes.txt").write_text(content)


def measured(argv: Sequence[str | Path], directory: Path) -> Run:
    """Run a command, and count what it and all processes that it waited for did."""
    os.sync()  # a disk that still writes what the last command left would slow this one
    started = time.perf_counter()
    child = subprocess.Popen(
        [str(word) for word in argv],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    told = child.stderr.read()
    # A zombie still has its counts; those of its own children were added when it waited for them (proc_pid_io(5)).
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.perf_counter() - started
    counts = dict(line.split(": ") for line in Path(f"/proc/{child.pid}/io").read_text().splitlines())
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        print(told.decode(errors="replace"), file=sys.stderr)
        raise subprocess.CalledProcessError(
            os.waitstatus_to_exitcode(status), [str(word) for word in argv], stderr=told
        )
    return Run(seconds, usage.ru_maxrss * 1024, int(counts["rchar"]), int(counts["wchar"]))


def _table(caption: str, base: Path, rows: Sequence[Row]) -> Table:
    size = base.stat().st_size
    columns = (
        "change",
        "ctk, s",
        "by hand, s",
        "by hand ÷ ctk",
        "read",
        "written",
        "guard, s",
        "memory, MB",
        "image, MB",
        "by hand, MB",
    )
    return Table(
        caption,
        columns,
        tuple(
            (
                row.case.name,
                f"{row.seconds:.1f}",
                f"{row.by_hand.seconds:.1f}",
                f"{row.ratio:.1f}",
                f"{row.runs[-1].read / size:.2f}",
                f"{row.runs[-1].written / size:.2f}",
                "" if row.guard is None else f"{row.guard:.2f}",
                f"{max(run.memory for run in row.runs) / 1e6:.0f}",
                f"{row.size / 1e6:.0f}",
                f"{row.size_by_hand / 1e6:.0f}",
            )
            for row in rows
        ),
    )


def _target(row: Row) -> Target:
    assert row.case.target is not None
    words = f"{row.case.name} on 3 GB at least {row.case.target:.0f} times as fast as by hand: {row.ratio:.1f} times"
    return Target(words, row.ratio >= row.case.target)


def _reads(row: Row, base: Path) -> Target:
    share = row.runs[-1].read / base.stat().st_size
    return Target(f"{row.case.name} on 3 GB reads at most 1.3 times the base: {share:.2f} times", share <= 1.3)


def _growth(ctk: Path, base: Path, work: Path) -> Table:
    """(c) with larger files of random bytes."""
    (work / "defs").mkdir(parents=True)
    (work / "defs/bench.toml").write_text(_FILES.format(base=base))
    rows = []
    for size in (1, 100, 500):
        with (work / "defs/notes.txt").open("wb") as file:
            for _ in range(size):
                file.write(os.urandom(10**6))
        run = measured([ctk, "build", "bench", "-o", "bench.sif", "--layered"], work)
        share = base.stat().st_size
        rows.append((f"{size}", f"{run.seconds:.1f}", f"{run.read / share:.2f}", f"{run.written / share:.2f}"))
    return Table("(c) on 3 GB, by the size of the file", ("file, MB", "ctk, s", "read", "written"), tuple(rows))


def _layered(ctk: Path, base: Path, directory: Path, layers: int) -> Path:
    """An image with so many layers over `base`."""
    for number in range(layers):
        work = directory / f"over-{number}"
        (work / "defs").mkdir(parents=True, exist_ok=True)
        _write_files(work, base, str(number))
        base = work / "bench.sif"
        subprocess.run([ctk, "build", "bench", "--layered"], cwd=work, check=True, capture_output=True)
    return base


def _starts(ctk: Path, base: Path, directory: Path) -> Table:
    """The bare start of a container, by the number of layers."""
    images = {count: _layered(ctk, base, directory / str(count), count) for count in range(4)}
    runtime = find_runtime(load_site())
    times = interleaved(
        {str(count): runtime.exec(image, ["true"], gpu=False) for count, image in images.items()}, rounds=11
    )
    rows = tuple((name, f"{1000 * found.median:.0f}", f"{1000 * found.fastest:.0f}") for name, found in times.items())
    return Table("The start of a container: `apptainer exec IMAGE true`", ("layers", "median, ms", "fastest, ms"), rows)


def _reflinks(ctk: Path, base: Path, directory: Path) -> Table:
    """(c) on XFS, which copies the base by reference, and on the file system of the other tables. Needs root."""
    disk, mount = directory / "xfs.img", directory / "xfs"
    mount.mkdir()
    with disk.open("wb") as file:
        file.truncate(8 * base.stat().st_size)  # ctk asks for room for several images; it is sparse
    subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", disk], check=True)
    subprocess.run(["mount", "-o", "loop", disk, mount], check=True)
    try:
        copy = mount / "base.sif"
        shutil.copyfile(base, copy)
        case = Case("(c) a file changed", "zero", ("one", "two", "three"))
        places = {"XFS, by reference": (copy, mount / "work"), "copied": (base, directory / "copied")}
        runs = {name: _runs(case, start, ctk, work) for name, (start, work) in places.items()}
    finally:
        subprocess.run(["umount", mount], check=True)
    rows = tuple((name, f"{_median(found):.1f}", f"{found[-1].written / 1e6:.0f}") for name, found in runs.items())
    return Table("(c) on 3 GB, by the file system", ("base", "median, s", "written, MB"), rows)


def _imports(ctk: Path, base: Path, directory: Path) -> Target:
    """`import torch` in a layered image, and in its base, which is flat."""
    image = _layered(ctk, base, directory / "torch", 1)
    runtime, load = find_runtime(load_site()), ["python3", "-c", "import torch"]
    times = interleaved(
        {"layered": runtime.exec(image, load, gpu=False), "flat": runtime.exec(base, load, gpu=False)}, rounds=5
    )
    layered, flat = times["layered"].median, times["flat"].median
    words = f"`import torch` takes at most 1.10 times as long from a layered image: {layered:.2f} s and {flat:.2f} s"
    return Target(words, layered <= 1.10 * flat)
